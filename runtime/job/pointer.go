package job

import (
	"errors"
	"strings"
)

// Pointer is a JSON Pointer (RFC 6901): the names and indexes that lead to a value; empty
// for the whole text.
type Pointer []string

// pointerEscapes are what a name in a pointer is written with.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// ParsePointer reads a pointer, such as "/customer/id".
func ParsePointer(text string) (Pointer, error) {
	if text == "" {
		return Pointer{}, nil
	}
	rest, rooted := strings.CutPrefix(text, "/")
	if !rooted {
		return nil, errors.New(`must be a JSON Pointer, which begins with a slash, such as "/customer/id"`)
	}
	steps := strings.Split(rest, "/")
	for i, step := range steps {
		for _, after := range strings.Split(step, "~")[1:] {
			if !strings.HasPrefix(after, "0") && !strings.HasPrefix(after, "1") {
				return nil, errors.New("must be a JSON Pointer, in which ~ is written as ~0")
			}
		}
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps, nil
}

// String is the text that ParsePointer reads.
func (p Pointer) String() string {
	var text strings.Builder
	for _, step := range p {
		text.WriteString("/" + pointerEscapes.Replace(step))
	}
	return text.String()
}
