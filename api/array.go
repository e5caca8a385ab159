package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// array walks a JSON array while it comes in. It looks only for where items
// end; whether they are JSON remains to be seen.
type array struct {
	input *bufio.Reader
	// most is the length of the longest item.
	most  int
	here  spot
	begun bool
	text  []byte
}

func newArray(body io.Reader, most int64) *array {
	return &array{input: bufio.NewReaderSize(body, readAtOnce), most: int(most), here: firstSpot}
}

func (a *array) next() (item, error) {
	read, err := a.item()
	var answer *v1.Problem
	var syntax syntaxError
	switch {
	case err == nil, errors.Is(err, errOver), errors.As(err, &answer):
	case errors.Is(err, io.EOF):
		err = a.broken("unexpected end of JSON input")
	case errors.As(err, &syntax):
		err = a.broken(syntax.Error())
	default:
		err = unread(err)
	}
	if errors.Is(err, errOver) {
		err = io.EOF
	}
	return read, err
}

func (a *array) broken(why string) error {
	return problem(http.StatusBadRequest, fmt.Sprintf("the body is not JSON: %s: %s", why, a.here))
}

// errOver says that the array has ended, and the body with it.
var errOver = errors.New("no more items")

// syntaxError is told in the words of encoding/json.
type syntaxError struct {
	found byte
	where string
}

func (e syntaxError) Error() string { return fmt.Sprintf("invalid character %q %s", e.found, e.where) }

func (a *array) item() (item, error) {
	c, err := a.begin()
	if err != nil {
		return item{}, err
	}
	read := item{start: a.here}
	read.text, read.tooLong, err = a.value()
	if err == nil && len(read.text) == 0 {
		err = syntaxError{found: c, where: "looking for beginning of value"}
	}
	return read, err
}

// begin passes over what stands before an item and returns its first byte.
func (a *array) begin() (byte, error) {
	first := !a.begun
	c, err := a.peek()
	switch {
	case first && errors.Is(err, io.EOF):
		return 0, problem(http.StatusBadRequest, "the body is empty")
	case err != nil:
		return 0, err
	case first && c != '[':
		return 0, invalid(at("#", "must be an array"))
	case !first && c == ']':
		return 0, a.end()
	case !first && c != ',':
		return 0, syntaxError{found: c, where: "after array element"}
	}
	a.begun = true
	a.pass(1)
	c, err = a.peek()
	if err == nil && first && c == ']' {
		return 0, a.end()
	}
	return c, err
}

// end makes sure that nothing follows the bracket that is next.
func (a *array) end() error {
	a.pass(1)
	c, err := a.peek()
	switch {
	case errors.Is(err, io.EOF):
		return errOver
	case err != nil:
		return err
	}
	return syntaxError{found: c, where: "after top-level value"}
}

// peek passes over white space and returns the byte that follows.
func (a *array) peek() (byte, error) {
	for {
		next, err := a.input.Peek(1)
		if err != nil {
			return 0, err
		}
		if !isBlank(next[0]) {
			return next[0], nil
		}
		a.pass(1)
	}
}

// pass moves on over bytes that are in the buffer.
func (a *array) pass(n int) {
	passed, _ := a.input.Peek(n)
	a.here = a.here.after(passed)
	_, _ = a.input.Discard(n)
}

// value returns the text of the value that begins here, or as much of it as
// may be kept.
func (a *array) value() (text []byte, tooLong bool, err error) {
	a.text = a.text[:0]
	var end ending
	for {
		if _, err := a.input.Peek(1); err != nil {
			return nil, false, err
		}
		chunk, _ := a.input.Peek(a.input.Buffered())
		n, over := end.find(chunk)
		kept := min(n, a.most-len(a.text))
		tooLong = tooLong || kept < n
		a.text = append(a.text, chunk[:kept]...)
		a.pass(n)
		if over {
			return a.text, tooLong, nil
		}
	}
}

// ending finds the end of a JSON value that comes in pieces.
type ending struct {
	depth           int
	quoted, escaped bool
}

// find returns how much of the chunk belongs to the value, and whether the
// value is over.
func (e *ending) find(chunk []byte) (n int, over bool) {
	for i, c := range chunk {
		switch {
		case e.escaped:
			e.escaped = false
		case e.quoted && c == '\\':
			e.escaped = true
		case c == '"':
			if e.quoted = !e.quoted; !e.quoted && e.depth == 0 {
				return i + 1, true
			}
		case e.quoted:
		case c == '{' || c == '[':
			e.depth++
		case e.depth == 0 && endsWord(c):
			return i, true
		case c == '}' || c == ']':
			if e.depth--; e.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}
