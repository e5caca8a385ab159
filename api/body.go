package api

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strings"
)

// firstBuffer is what a declared length can make the server reserve before a
// byte of the body has come.
const firstBuffer = 16 << 10

// readBody returns the body of a JSON request, or a problem. The bytes are
// the caller's own.
func (s *service) readBody(r *http.Request) ([]byte, error) {
	if !isJSON(r.Header) {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	tooLarge := problem(http.StatusRequestEntityTooLarge,
		fmt.Sprintf("the body is larger than %d bytes", s.maxBodyBytes))
	if r.ContentLength > s.maxBodyBytes {
		return nil, tooLarge
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), firstBuffer)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(nil, r.Body, s.maxBodyBytes))

	var limit *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge
	case errors.As(err, &network) && network.Timeout():
		return nil, problem(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return nil, problem(http.StatusBadRequest, "the body could not be read to its end")
	case len(bytes.TrimSpace(body.Bytes())) == 0:
		return nil, problem(http.StatusBadRequest, "the body is empty")
	}
	return body.Bytes(), nil
}

// isJSON is strict about the header: requests without it are those that a
// page of another site can make a browser send.
func isJSON(header http.Header) bool {
	media, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return false
	}
	charset := strings.ToLower(parameters["charset"])
	encoding := strings.ToLower(header.Get("Content-Encoding"))
	return (charset == "" || charset == "utf-8") && (encoding == "" || encoding == "identity")
}
