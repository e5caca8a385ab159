package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Rows travel as PostgreSQL's COPY writes them, which is the text of each value. Both
// functions here are the inverse of the other, for all that COPY writes.

// copyEscapes are the letters that COPY writes after a backslash.
var copyEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\'}

const hexDigits = "0123456789abcdef"

// appendJSON appends a row of COPY, without its line break, as a JSON array.
func appendJSON(to, row []byte) ([]byte, error) {
	if !utf8.Valid(row) {
		return nil, errors.New("it is not UTF-8: a database with another encoding cannot be exported")
	}
	to = append(to, '[')
	for first := true; ; first = false {
		field, rest, more := bytes.Cut(row, []byte{'\t'})
		if !first {
			to = append(to, ',')
		}
		var err error
		if to, err = appendField(to, field); err != nil {
			return nil, err
		}
		if row = rest; !more {
			return append(to, ']'), nil
		}
	}
}

func appendField(to, field []byte) ([]byte, error) {
	if string(field) == `\N` {
		return append(to, "null"...), nil
	}
	to = append(to, '"')
	for i := 0; i < len(field); i++ {
		b := field[i]
		if b == '\\' {
			if i++; i == len(field) || copyEscapes[field[i]] == 0 {
				return nil, fmt.Errorf("COPY wrote %q, which is unknown", field)
			}
			b = copyEscapes[field[i]]
		}
		switch {
		case b == '"' || b == '\\':
			to = append(to, '\\', b)
		case b < ' ':
			to = append(to, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		default:
			to = append(to, b)
		}
	}
	return append(to, '"'), nil
}

var errRow = errors.New("it is no row")

// appendCopy appends a row of a file as COPY reads it, with a line break, and returns how
// many columns it has.
func appendCopy(to, line []byte) ([]byte, int, error) {
	rest, ok := bytes.CutPrefix(line, []byte{'['})
	if !ok {
		return nil, 0, errRow
	}
	for columns := 1; ; columns++ {
		var err error
		if after, null := bytes.CutPrefix(rest, []byte("null")); null {
			to, rest = append(to, `\N`...), after
		} else if to, rest, err = appendText(to, rest); err != nil {
			return nil, 0, err
		}
		switch {
		case string(rest) == "]":
			return append(to, '\n'), columns, nil
		case len(rest) == 0 || rest[0] != ',':
			return nil, 0, errRow
		}
		to, rest = append(to, '\t'), rest[1:]
	}
}

// appendText appends the string at the beginning of text, and returns what follows it.
func appendText(to, text []byte) (_, rest []byte, _ error) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, errRow
	}
	for i := 1; i < len(text); i++ {
		b := text[i]
		switch b {
		case '"':
			return to, text[i+1:], nil
		case '\\':
			if i++; i == len(text) {
				return nil, nil, errRow
			}
			switch b = text[i]; b {
			case '"', '\\':
			case 'u':
				var ok bool
				if b, ok = control00(text[i+1:]); !ok {
					return nil, nil, errRow
				}
				i += 4
			default:
				return nil, nil, errRow
			}
		}
		switch b {
		case '\\':
			to = append(to, `\\`...)
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\t':
			to = append(to, `\t`...)
		default:
			to = append(to, b)
		}
	}
	return nil, nil, errRow
}

// control00 reads the four digits of a control character. PostgreSQL has no text with the
// character 0.
func control00(digits []byte) (b byte, ok bool) {
	if len(digits) < 4 || digits[0] != '0' || digits[1] != '0' {
		return 0, false
	}
	high, low := bytes.IndexByte([]byte(hexDigits), digits[2]), bytes.IndexByte([]byte(hexDigits), digits[3])
	if high < 0 || low < 0 || high == 0 && low == 0 {
		return 0, false
	}
	return byte(high<<4 | low), true //nolint:gosec // both are below 16
}
