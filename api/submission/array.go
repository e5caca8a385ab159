package submission

import (
	"errors"
	"fmt"
	"io"
)

// ErrNotArray says that a body is not an array.
var ErrNotArray = errors.New("must be an array")

// TooLargeError says that a submission has more bytes than are allowed.
type TooLargeError struct {
	most  int
	where position
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the submission is larger than %d bytes: %s", e.most, e.where)
}

// TooLargeLine is the error of a line that is too long to be read completely.
func TooLargeLine(line, most int) error {
	return &TooLargeError{most: most, where: position{line: line, column: 1}}
}

// Array reads the submissions of a JSON array, one after the other.
type Array struct {
	parser
	most  int
	begun bool
}

// NewArray returns a reader of the body. most limits the bytes of each submission.
func NewArray(body []byte, most int) *Array {
	return &Array{parser: parser{scanner: scanner{text: body}}, most: most}
}

// Next returns the next submission, and io.EOF after the last one. Any other error
// says that the body is not a JSON array; then refuse all of its submissions.
func (a *Array) Next() (Item, error) {
	first := !a.begun
	if first {
		if a.atEnd() {
			return Item{}, ErrEmpty
		}
		if a.next() != '[' {
			return Item{}, ErrNotArray
		}
		a.begun = true
		a.i++
	}
	switch c := a.next(); {
	case c == ']':
		if a.i++; a.atEnd() {
			return Item{}, io.EOF
		}
		return Item{}, a.broken()
	case c == ',' && !first:
		a.i++
	case !first:
		return Item{}, a.broken()
	}
	a.next()
	begin := a.i
	a.item, a.seen, a.set = Item{}, 0, 0
	if !a.submission() {
		return Item{}, a.broken()
	}
	if a.i-begin > a.most {
		return Item{Err: &TooLargeError{most: a.most, where: positionOf(1, a.text[:begin])}}, nil
	}
	return a.item, nil
}

func (a *Array) broken() error { return a.err(1, len(a.text)) }
