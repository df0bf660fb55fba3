"""An application as Flask's quick start writes it: a page, and a form that is posted."""

from flask import Flask, request

app = Flask(__name__)


@app.get("/")
def page() -> str:
    return "<p>Hello, World!</p>"


@app.post("/notes")
def keep() -> dict[str, int]:
    return {"bytes": len(request.get_data())}
