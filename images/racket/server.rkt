#lang racket/base
;; Racket's web server: one dispatcher for all paths, which repairs and refuses nothing.

(require json
         net/base64
         net/url
         racket/list
         racket/port
         web-server/http
         web-server/safety-limits
         web-server/web-server
         (prefix-in lift: web-server/dispatchers/dispatch-lift))

(define hello #"Hello World!")
(define big (make-bytes (expt 2 20) (char->integer #\a)))

(define (answer status content [kind #"text/plain"] . fields)
  (response/full status #f (current-seconds) kind fields (list content)))

(define (answer-json value) (answer 200 (jsexpr->bytes value) #"application/json"))

(define (octets value) (bytes->string/latin-1 (base64-encode value #"")))

(define (mirror request content)
  (hasheq 'method (octets (request-method request))
          'target (octets (string->bytes/utf-8 (url->string (request-uri request))))
          'authority (json-null)
          'version (json-null)
          'content (octets content)
          'fields (for/list ([field (request-headers/raw request)])
                    (list (octets (header-field field)) (octets (header-value field))))
          'trailers (json-null)
          'request_number (json-null)))

(define (path-of request)
  (define parts (map path/param-path (url-path (request-uri request))))
  (if (and (pair? parts) (andmap string? parts)) (apply string-append (add-between (cons "" parts) "/")) ""))

(define (handle request)
  (define content (or (request-post-data/raw request) #""))
  (case (path-of request)
    [("/body") (answer 200 content)]
    [("/echo")
     (answer-json (for/hasheq ([pair (url-query (request-uri request))])
                    (values (car pair) (or (cdr pair) ""))))]
    [("/mirror") (answer-json (mirror request content))]
    [("/slow") (sleep 0.5) (answer 200 hello)]
    [("/204") (answer 204 #"" #f)]
    [("/304") (answer 304 #"" #f (header #"ETag" #"\"httpmark\""))]
    [("/redirect") (answer 302 #"" #f (header #"Location" #"/hello"))]
    [("/big") (answer 200 big)]
    [("/404") (answer 404 #"Not Found")]
    [("/get-only")
     (if (member (request-method request) '(#"GET" #"HEAD"))
         (answer 200 hello)
         (answer 405 #"Method Not Allowed" #"text/plain" (header #"Allow" #"GET, HEAD")))]
    [else (answer 200 hello)]))

(define (start address port timeout)
  (define limits
    (if timeout
        (make-safety-limits #:max-waiting 4096
                            #:request-read-timeout timeout
                            #:response-timeout timeout
                            #:response-send-timeout timeout)
        (make-safety-limits #:max-waiting 4096)))
  (serve #:dispatch (lift:make handle) #:listen-ip address #:port port #:safety-limits limits))

(module+ main
  (define words (current-command-line-arguments))
  (define timeout (and (= (vector-length words) 3) (string->number (vector-ref words 2))))
  ;; What a client did wrong would be told on the standard error.
  (define stop
    (parameterize ([current-error-port (open-output-nowhere)])
      (start (vector-ref words 0) (string->number (vector-ref words 1)) timeout)))
  (with-handlers ([exn:break? (lambda (_) (stop))])
    (sync/enable-break never-evt)))
