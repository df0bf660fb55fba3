{-# LANGUAGE OverloadedStrings #-}

-- | Warp as a server: one application for all paths, which repairs and refuses nothing.
module Main (main) where

import Control.Concurrent (forkIO, threadDelay)
import Control.Monad (void, when)
import qualified Data.ByteString as B
import qualified Data.ByteString.Base64 as Base64
import qualified Data.ByteString.Builder as Builder
import qualified Data.ByteString.Char8 as C
import qualified Data.ByteString.Lazy as L
import qualified Data.CaseInsensitive as CI
import Data.List (intersperse)
import Data.Maybe (fromMaybe)
import Data.String (fromString)
import qualified Network.HTTP.Types as H
import Network.Wai
import qualified Network.Wai.Handler.Warp as Warp
import qualified Network.Wai.Handler.Warp.Internal as Warp (warpVersion)
import qualified Network.Wai.Handler.WarpTLS as WarpTLS
import System.Environment (getArgs)
import System.Exit (ExitCode (ExitSuccess))
import System.Posix.Process (exitImmediately)
import System.Posix.Signals (Handler (Catch), installHandler, sigTERM)
import Text.Printf (printf)

plain :: H.Status -> H.ResponseHeaders -> L.ByteString -> Response
plain status fields = sized status (("Content-Type", "text/plain") : fields)

-- | Warp sends chunks where the application states no length.
sized :: H.Status -> H.ResponseHeaders -> L.ByteString -> Response
sized status fields content = responseLBS status (("Content-Length", C.pack (show (L.length content))) : fields) content

hello :: Response
hello = plain H.status200 [] "Hello World!"

json :: Builder.Builder -> Response
json = sized H.status200 [("Content-Type", "application/json")] . Builder.toLazyByteString

octets :: B.ByteString -> Builder.Builder
octets value = "\"" <> Builder.byteString (Base64.encode value) <> "\""

text :: B.ByteString -> Builder.Builder
text value = "\"" <> foldMap escaped (C.unpack value) <> "\""
  where
    escaped byte
      | byte `elem` ("\"\\" :: String) = "\\" <> Builder.char8 byte
      | byte < ' ' = Builder.string8 (printf "\\u%04x" (fromEnum byte))
      | otherwise = Builder.char8 byte

list :: [Builder.Builder] -> Builder.Builder
list values = "[" <> mconcat (intersperse "," values) <> "]"

object :: [(B.ByteString, Builder.Builder)] -> Builder.Builder
object members = "{" <> mconcat (intersperse "," [text name <> ":" <> value | (name, value) <- members]) <> "}"

mirror :: Request -> B.ByteString -> Builder.Builder
mirror request content =
  object
    [ ("method", octets (requestMethod request)),
      ("target", octets (rawPathInfo request <> rawQueryString request)),
      ("authority", "null"), -- Warp computes none
      ("version", octets (C.pack (show (httpVersion request)))),
      ("content", octets content),
      ("fields", list [list [octets (CI.original name), octets value] | (name, value) <- requestHeaders request]),
      ("trailers", "null"), -- WAI has none
      ("request_number", "null")
    ]

application :: Application
application request respond = case rawPathInfo request of
  "/early" -> respond hello
  path -> do
    content <- L.toStrict <$> strictRequestBody request
    when (path == "/slow") (threadDelay 500000)
    respond (answer path content)
  where
    answer :: B.ByteString -> B.ByteString -> Response
    answer "/body" content = plain H.status200 [] (L.fromStrict content)
    answer "/echo" _ = json (object [(name, text (fromMaybe "" value)) | (name, value) <- queryString request])
    answer "/mirror" content = json (mirror request content)
    answer "/204" _ = responseLBS H.status204 [] ""
    answer "/304" _ = responseLBS H.status304 [("ETag", "\"httpmark\"")] ""
    answer "/redirect" _ = sized H.status302 [("Location", "/hello")] ""
    answer "/big" _ = plain H.status200 [] (L.replicate 1048576 97)
    answer "/404" _ = plain H.status404 [] "Not Found"
    answer "/get-only" _
      | requestMethod request `notElem` ["GET", "HEAD"] =
          plain H.status405 [("Allow", "GET, HEAD")] "Method Not Allowed"
    answer _ _ = hello

main :: IO ()
main = do
  void (installHandler sigTERM (Catch (exitImmediately ExitSuccess)) Nothing)
  getArgs >>= serve

serve :: [String] -> IO ()
serve ["--version"] = putStrLn Warp.warpVersion
serve (address : port : options) = do
  case after "--tls" of
    tlsPort : certificate : key : _ ->
      void (forkIO (WarpTLS.runTLS (WarpTLS.tlsSettings certificate key) (settings tlsPort) application))
    _ -> pure ()
  Warp.runSettings (settings port) application
  where
    after word = drop 1 (dropWhile (/= word) options)
    timeout = case after "--timeout" of
      seconds : _ -> Warp.setTimeout (read seconds)
      [] -> id
    settings at =
      Warp.setHTTP2Disabled . Warp.setHost (fromString address) . Warp.setPort (read at) . timeout $
        Warp.setOnException (\_ _ -> pure ()) Warp.defaultSettings
serve _ = error "words: ADDRESS PORT [--timeout SECONDS] [--tls PORT CERTIFICATE KEY]"
