"""The scanner that measures C++ functions finds each of them, and nothing else."""

from __future__ import annotations

import pytest

from httpmark.harness.tests.shared.cpp_functions import CppFunction, code_of, functions

# A source, and the names and body lines of its functions.
SAMPLES = {
    "a free function": ("int f(int a) {\n    return a;\n}\n", [("f", 1)]),
    "an empty body": ("void f() {}\n", [("f", 0)]),
    "a declaration": ("int f(int a);\nstruct S;\n", []),
    "a member": ("int a::B::f() const noexcept {\n    g();\n    return 1;\n}\n", [("a::B::f", 2)]),
    "members in a class": (
        "namespace n {\nclass C final : public B<int(int)> {\n  public:\n"
        "    int f() { return 1; }\n    bool g() const {\n        return {};\n    }\n"
        "  private:\n    int a_{0};\n};\n}\n",
        [("f", 0), ("g", 1)],
    ),
    "a constructor": ("C::C(int a) : a_(a), b_(1) {\n    go();\n}\n", [("C::C", 1)]),
    "members initialised by braces": (
        "C::C(int a)\n    : B{a}, a_{f({1, 2})}, b_(1) {\n    go();\n}\n",
        [("C::C", 1)],
    ),
    "a last member initialised by braces": ("C::C(int a) : a_{a} {\n\n}\n", [("C::C", 1)]),
    "a destructor": ("C::~C() {\n    end();\n}\n", [("C::~C", 1)]),
    "operators": (
        "C& C::operator=(C&& o) noexcept {\n    x();\n}\n"
        "bool C::operator==(int) const {\n    y();\n    z();\n}\n"
        "int C::operator()(int a) {\n    return a;\n}\n"
        "int C::operator[](int i) {\n    return i;\n}\n"
        "C::operator bool() const {\n    return true;\n}\n",
        [
            ("C::operator=", 1), ("C::operator==", 2), ("C::operator()", 1), ("C::operator[]", 1),
            ("C::operatorbool", 1),
        ],
    ),
    "a template": (
        "template <class T, std::size_t N = sizeof(T)>\ntemplate <class U>\n"
        "[[gnu::always_inline]] inline bool C<T>::f(const U& u, int n = 3) {\n    return n;\n}\n",
        [("C<T>::f", 1)],
    ),
    "a return type behind": (
        "auto f() -> std::vector<int> {\n    return {};\n}\n", [("f", 1)],
    ),
    "a lambda in a function": (
        "int f() {\n    auto g = [&](int a) {\n        return a;\n    };\n    return g(1);\n}\n",
        [("f", 4)],
    ),
    "a struct in a function": (
        "int f() {\n    struct S {\n        int g() { return 1; }\n    };\n"
        "    return S{}.g();\n}\n",
        [("f", 4)],
    ),
    "a table": ("constexpr Row kRows[] = {\n    {1, f(2)},\n    {3, f(4)},\n};\n", []),
    "a table with lambdas": (
        "const Row kRows[] = {\n    {\"a\", [](int& a) {\n         a = 1;\n     }},\n"
        "    {1, 2},\n};\n",
        [("lambda", 1)],
    ),
    "a value made by a lambda": (
        "constexpr T kT = [] {\n    T t{};\n    return t;\n}();\nvoid f() {\n}\n",
        [("lambda", 2), ("f", 0)],
    ),
    "a member with calls in its type": (
        "struct S {\n    std::array<int, static_cast<int>(3)> a{};\n"
        "    enum class E : char { kA };\n};\n",
        [],
    ),
    "tests": (
        "TEST(Suite, a_law) {\n    LAW(true);\n}\nTEST_F(Suite, b) {\n}\n",
        [("TEST(Suite, a_law)", 1), ("TEST_F(Suite, b)", 0)],
    ),
    "C linkage": (
        'extern "C" {\nvoid f() {\n}\n}\nextern "C" int g(int a) {\n    return a;\n}\n',
        [("f", 0), ("g", 1)],
    ),
    "braces in what is no code": (
        "void f() {  // {\n    a(\"{\\\"{\", '{', '\\'', R\"x({\n)\" }{)x\", u8R\"({)\");\n"
        "    /* {\n */\n"
        "    long n = 1'000 + 0xF'F;\n}\n#define M(a) \\\n    {\nvoid g() {\n}\n",
        [("f", 5), ("g", 0)],
    ),
    "statements with brackets": (
        "void f() {\n    for (int i = 0; i < 3; ++i) {\n        if (x) {\n        }\n    }\n}\n"
        "void g() {\n}\n",
        [("f", 4), ("g", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_function_is_found_with_its_name_and_length(name: str) -> None:
    source, expected = SAMPLES[name]
    assert [(one.name, one.body_lines) for one in functions(source)] == expected


def test_a_function_tells_where_its_body_begins() -> None:
    assert functions("// a\n\nint f(int a,\n      int b) {\n}\n") == [CppFunction("f", 4, 0)]


@pytest.mark.parametrize(
    "source", ["void f() {\n", "}\n", "void f( {\n}\n", "#if A\nf() {\n#endif\n"]
)
def test_a_source_that_cannot_be_measured_is_said(source: str) -> None:
    with pytest.raises(ValueError, match=r"brace|bracket"):
        functions(source)


def test_what_is_no_code_keeps_its_lines() -> None:
    source = 'a /* x\ny */ b // c\n#define D \\\n  1\n"e" R"(f\n)" g\n'
    assert code_of(source).count("\n") == source.count("\n")
    assert "".join(code_of(source).split()) == 'ab""""g'
