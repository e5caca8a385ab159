package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxDepth bounds how deep JSON may be nested.
	maxDepth = 100
	// maxDigits bounds the digits of a number and its exponent: exact
	// arithmetic on a few bytes such as 1e1000000 would take milliseconds.
	// The largest number of 64 bits is below 1e309.
	maxDigits = 400
)

var errNotJSON = errors.New("is not JSON")

// read decodes JSON. Numbers become json.Number, which keeps all of their digits.
func read(text []byte) (any, error) {
	if err := screen(text); err != nil {
		return nil, err
	}
	input := json.NewDecoder(bytes.NewReader(text))
	input.UseNumber()
	var value any
	if err := input.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotJSON, err)
	}
	if _, err := input.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is more text after its end", errNotJSON)
	}
	return value, nil
}

// screen refuses JSON whose check would cost many times its size.
func screen(text []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("is nested more than %d levels deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c >= '0' && c <= '9':
			length := numberLength(text[i:])
			if tooManyDigits(text[i : i+length]) {
				return fmt.Errorf("holds a number of more than %d digits", maxDigits)
			}
			i += length - 1
		}
	}
	return nil
}

func numberLength(text []byte) int {
	for i, c := range text {
		if (c < '0' || c > '9') && !bytes.ContainsRune([]byte("+-.eE"), rune(c)) {
			return i
		}
	}
	return len(text)
}

func tooManyDigits(number []byte) bool {
	if len(number) > maxDigits {
		return true
	}
	e := bytes.IndexAny(number, "eE")
	if e < 0 {
		return false
	}
	exponent := 0
	for _, c := range number[e+1:] {
		if c >= '0' && c <= '9' {
			if exponent = exponent*10 + int(c-'0'); exponent > maxDigits {
				return true
			}
		}
	}
	return false
}
