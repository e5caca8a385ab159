package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson"
)

// firstBuffer is what a declared length can make the server reserve before a
// byte of the body has come.
const firstBuffer = 16 << 10

// readBody returns the body of a JSON request, or a problem. The bytes are
// the caller's own, and part of his share.
func (s *service) readBody(r *http.Request, share *share) ([]byte, error) {
	if mediaType(r.Header) != mediaJSON {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	if r.ContentLength > s.maxBodyBytes {
		return nil, tooLarge(s.maxBodyBytes)
	}
	body, err := readAll(http.MaxBytesReader(nil, r.Body, s.maxBodyBytes), r.ContentLength, share)
	switch {
	case err != nil:
		return nil, unread(err)
	case len(bytes.TrimSpace(body)) == 0:
		return nil, problem(http.StatusBadRequest, "the body is empty")
	}
	return body, nil
}

// readAll reads a body of a declared length, which is negative when nobody
// says. The share is charged for the memory that is reserved: it doubles when
// it is full, but up to the declared length, so that it is never more than
// twice what has come.
func readAll(body io.Reader, declared int64, share *share) ([]byte, error) {
	read := make([]byte, 0, min(max(declared, 0), firstBuffer)+1)
	if err := share.hold(cap(read)); err != nil {
		return nil, err
	}
	for {
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return nil, err
		case len(read) < cap(read):
			continue
		}
		room := max(2*cap(read), firstBuffer)
		if declared >= int64(cap(read)) {
			room = min(room, int(declared)+1) // One more, to see the end.
		}
		if err := share.hold(room); err != nil { // For a moment both are there.
			return nil, err
		}
		larger := append(make([]byte, 0, room), read...)
		share.give(cap(read))
		read = larger
	}
}

func tooLarge(most int64) *v1.Problem {
	return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most))
}

// unread is the answer to a body that could not be read to its end.
func unread(err error) error {
	var answer *v1.Problem
	var limit *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &answer):
		return err
	case errors.As(err, &limit):
		return tooLarge(limit.Limit)
	case errors.As(err, &network) && network.Timeout():
		return problem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return problem(http.StatusBadRequest, "the body could not be read to its end")
}

// mediaType returns what the body is declared to be, in UTF-8 and as it is;
// empty for anything else. It is strict: requests without the header are those
// that a page of another site can make a browser send.
func mediaType(header http.Header) string {
	media, parameters := header.Get("Content-Type"), map[string]string(nil)
	if media != mediaJSON {
		var err error
		if media, parameters, err = mime.ParseMediaType(media); err != nil {
			return ""
		}
	}
	charset := strings.ToLower(parameters["charset"])
	encoding := strings.ToLower(header.Get("Content-Encoding"))
	if (charset != "" && charset != "utf-8") || (encoding != "" && encoding != "identity") {
		return ""
	}
	return media
}
