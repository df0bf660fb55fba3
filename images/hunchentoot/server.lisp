;;; Hunchentoot as a server: one dispatcher for all paths, which repairs and refuses nothing.
;;; sbcl --load server.lisp --eval '(save "PROGRAM")' writes it as a program.

(require :asdf)
(asdf:load-system :hunchentoot)
(asdf:load-system :cl-base64)

(defparameter *hello* "Hello World!")
(defparameter *big* (make-array (expt 2 20) :element-type '(unsigned-byte 8) :initial-element (char-code #\a)))

(defclass acceptor (hunchentoot:acceptor) ())
(defclass tls-acceptor (acceptor hunchentoot:ssl-acceptor) ())

(defun answer (status content &optional (type "text/plain"))
  (setf (hunchentoot:return-code*) status
        (hunchentoot:content-type*) type)
  content)

(defun field (name value) (setf (hunchentoot:header-out name) value))

(defun octets (value)
  (etypecase value
    (null "null")
    (string (octets (map '(vector (unsigned-byte 8)) #'char-code value)))
    (vector (format nil "\"~a\"" (cl-base64:usb8-array-to-base64-string value)))))

(defun text (value)
  (with-output-to-string (out)
    (write-char #\" out)
    (loop for letter across value
          do (cond ((find letter "\"\\") (format out "\\~a" letter))
                   ((< (char-code letter) 32) (format out "\\u~4,'0x" (char-code letter)))
                   (t (write-char letter out))))
    (write-char #\" out)))

(defun json (control &rest values) (answer 200 (apply #'format nil control values) "application/json"))

(defun mirror (request content)
  (json "{\"method\":~a,\"target\":~a,\"authority\":null,\"version\":~a,\"content\":~a,\"fields\":[~{[~a,~a]~^,~}],\"trailers\":null,\"request_number\":null}"
        (octets (string (hunchentoot:request-method request)))
        (octets (hunchentoot:request-uri request))
        (octets (string (hunchentoot:server-protocol request)))
        (octets content)
        (loop for (name . value) in (hunchentoot:headers-in request)
              collect (octets (string name)) collect (octets value))))

(defun behave (path request)
  (flet ((at (place) (string= path place)))
    (cond ((at "/slow") (sleep 0.5) (answer 200 *hello*))
          ((at "/204") (answer 204 nil))
          ((at "/304") (field :etag "\"httpmark\"") (answer 304 nil))
          ((at "/redirect") (field :location "/hello") (answer 302 ""))
          ((at "/big") (answer 200 *big*))
          ((at "/404") (answer 404 "Not Found"))
          ((and (at "/get-only") (not (member (hunchentoot:request-method request) '(:get :head))))
           (field :allow "GET, HEAD")
           (answer 405 "Method Not Allowed"))
          (t (answer 200 *hello*)))))

(defmethod hunchentoot:acceptor-dispatch-request ((acceptor acceptor) request)
  (let ((path (hunchentoot:script-name request)))
    (if (string= path "/early")
        (answer 200 *hello*)
        (let ((content (or (hunchentoot:raw-post-data :request request :force-binary t)
                           (make-array 0 :element-type '(unsigned-byte 8)))))
          (cond ((string= path "/body") (answer 200 content))
                ((string= path "/echo")
                 (json "{~{~a:~a~^,~}}"
                       (loop for (name . value) in (hunchentoot:get-parameters request)
                             collect (text name) collect (text value))))
                ((string= path "/mirror") (mirror request content))
                (t (behave path request)))))))

(defun start (class address port timeout &rest more)
  (hunchentoot:start
   (apply #'make-instance class :address address :port (parse-integer port) :listen-backlog 4096
          :taskmaster (make-instance 'hunchentoot:one-thread-per-connection-taskmaster
                                     :max-thread-count 4096 :max-accept-count 8192)
          :access-log-destination nil :message-log-destination nil
          :read-timeout timeout :write-timeout timeout more)))

(defun main ()
  (let* ((words (rest sb-ext:*posix-argv*))
         (timeout (parse-integer (or (second (member "--timeout" words :test #'string=)) "20")))
         (tls (rest (member "--tls" words :test #'string=))))
    (cond ((string= (first words) "--version")
           (format t "~a~%" (asdf:component-version (asdf:find-system :hunchentoot))))
          (t
           (start 'acceptor (first words) (second words) timeout)
           (when tls
             (destructuring-bind (port certificate key &rest more) tls
               (declare (ignore more))
               (start 'tls-acceptor (first words) port timeout
                      :ssl-certificate-file certificate :ssl-privatekey-file key)))
           (loop (sleep 3600))))))

(defun save (program)
  (sb-ext:save-lisp-and-die program :toplevel #'main :executable t :save-runtime-options t))
