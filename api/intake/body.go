package intake

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// firstBuffer is the most memory that a declared length makes the server reserve
// before the first byte of the body has arrived.
const firstBuffer = 16 << 10

// ReadBody returns the whole body of a request, which may have up to most
// bytes. The share is charged for it. An error is an answer.
func ReadBody(r *http.Request, most int64, share *Share) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	body, err := readAll(http.MaxBytesReader(nil, r.Body, most), r.ContentLength, share)
	if err != nil {
		return nil, unread(err)
	}
	return body, nil
}

// readAll reads a body of a declared length; negative if unknown. The share is charged
// for the reserved memory. A full buffer doubles, up to the declared length, so it is
// never more than twice as large as the data that has arrived.
func readAll(body io.Reader, declared int64, share *Share) ([]byte, error) {
	read := make([]byte, 0, min(max(declared, 0), firstBuffer)+1)
	if err := share.Hold(cap(read)); err != nil {
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
			room = min(room, int(declared)+1) // One more byte shows the end.
		}
		if err := share.Hold(room); err != nil { // For a moment, both buffers exist.
			return nil, err
		}
		larger := append(make([]byte, 0, room), read...)
		share.give(cap(read), cap(read))
		read = larger
	}
}

func tooLarge(most int64) *v1.Problem {
	return v1.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most))
}

// unread is the answer to a body that could not be read to its end.
func unread(err error) *v1.Problem {
	var answer *v1.Problem
	var limit *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &answer):
		return answer
	case errors.As(err, &limit):
		return tooLarge(limit.Limit)
	case errors.As(err, &network) && network.Timeout():
		return v1.NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return v1.NewProblem(http.StatusBadRequest, "the body could not be read to its end")
}
