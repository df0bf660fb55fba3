(* Cohttp on Lwt as a server: one callback for all paths, which repairs and refuses nothing. *)

open Lwt.Infix
open Cohttp
open Cohttp_lwt_unix

let hello = "Hello World!"
let big = String.make (1 lsl 20) 'a'

let answer ?(fields = []) ?(kind = "text/plain") code content =
  let headers = Header.of_list (("Content-Type", kind) :: fields) in
  Server.respond_string ~headers ~status:(Code.status_of_code code) ~body:content ()

let without_content fields code =
  Server.respond ~headers:(Header.of_list fields) ~status:(Code.status_of_code code) ~body:Cohttp_lwt.Body.empty ()

let octets value = Printf.sprintf "\"%s\"" (Base64.encode_string value)

let text value =
  let out = Buffer.create 32 in
  let escaped = function
    | ('"' | '\\') as letter -> Printf.bprintf out "\\%c" letter
    | letter when letter < ' ' -> Printf.bprintf out "\\u%04x" (Char.code letter)
    | letter -> Buffer.add_char out letter
  in
  String.iter escaped value;
  Printf.sprintf "\"%s\"" (Buffer.contents out)

let joined values = String.concat "," values
let json = answer ~kind:"application/json" 200

let mirror request content =
  let pair (name, value) = Printf.sprintf "[%s,%s]" (octets name) (octets value) in
  json
    (Printf.sprintf
       "{\"method\":%s,\"target\":%s,\"authority\":null,\"version\":%s,\"content\":%s,\"fields\":[%s],\"trailers\":null,\"request_number\":null}"
       (octets (Code.string_of_method (Request.meth request)))
       (octets (Request.resource request))
       (octets (Code.string_of_version (Request.version request)))
       (octets content)
       (joined (List.map pair (Header.to_list (Request.headers request)))))

let echo uri =
  let member (name, values) = text name ^ ":" ^ text (joined values) in
  json ("{" ^ joined (List.map member (Uri.query uri)) ^ "}")

let callback _ request body =
  let uri = Request.uri request in
  match Uri.path uri with
  | "/early" -> answer 200 hello
  | path -> (
      Cohttp_lwt.Body.to_string body >>= fun content ->
      match path with
      | "/body" -> answer 200 content
      | "/echo" -> echo uri
      | "/mirror" -> mirror request content
      | "/slow" -> Lwt_unix.sleep 0.5 >>= fun () -> answer 200 hello
      | "/204" -> without_content [] 204
      | "/304" -> without_content [ ("ETag", "\"httpmark\"") ] 304
      | "/redirect" -> answer ~fields:[ ("Location", "/hello") ] 302 ""
      | "/big" -> answer 200 big
      | "/404" -> answer 404 "Not Found"
      | "/get-only" when not (List.mem (Request.meth request) [ `GET; `HEAD ]) ->
          answer ~fields:[ ("Allow", "GET, HEAD") ] 405 "Method Not Allowed"
      | _ -> answer 200 hello)

let listening address port =
  let socket = Lwt_unix.socket Unix.PF_INET Unix.SOCK_STREAM 0 in
  Lwt_unix.setsockopt socket Unix.SO_REUSEADDR true;
  Lwt_unix.bind socket (Unix.ADDR_INET (Unix.inet_addr_of_string address, port)) >|= fun () ->
  Lwt_unix.listen socket 4096;
  socket

let () =
  Sys.set_signal Sys.sigpipe Sys.Signal_ignore;
  Sys.set_signal Sys.sigterm (Sys.Signal_handle (fun _ -> exit 0));
  (* Closing a connection is a job of Lwt's pool of threads, which would grow to any number. *)
  Lwt_unix.set_pool_size 1;
  let address = Sys.argv.(1) and port = int_of_string Sys.argv.(2) in
  Lwt_main.run
    ( listening address port >>= fun socket ->
      let on_exn _ = () in
      Server.create ~on_exn ~mode:(`TCP (`Socket socket)) (Server.make ~callback ()) )
