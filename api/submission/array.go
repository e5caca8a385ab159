package submission

import (
	"fmt"
	"io"
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// TooLargeLine is the answer to a line that is too long to be read completely.
func TooLargeLine(line, most int) *v1.Problem { return tooLarge(most, position{line: line, column: 1}) }

func tooLarge(most int, where position) *v1.Problem {
	return v1.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the submission is larger than %d bytes: %s", most, where))
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

// Next returns the next submission, and io.EOF after the last one. Any other error is
// the answer to a body that is not a JSON array; then refuse all of its submissions.
func (a *Array) Next() (Item, error) {
	first := !a.begun
	if first {
		if a.atEnd() {
			return Item{}, empty()
		}
		if a.next() != '[' {
			return Item{}, v1.Invalid(v1.Mistake{Location: "#", Message: "must be an array"})
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
		return Item{Problem: tooLarge(a.most, positionOf(1, a.text[:begin]))}, nil
	}
	return a.item, nil
}

func (a *Array) broken() *v1.Problem { return a.problem(1, len(a.text)) }
