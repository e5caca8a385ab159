package api

import (
	"errors"
	"net/http"
	"strings"
)

const keyHeader = "Idempotency-Key"

// keyOf returns the key in the header and whether there is one. The key may
// be bare, or quoted as a structured field's string (RFC 9651).
func keyOf(header http.Header) (key string, found bool, err error) {
	values := header.Values(keyHeader)
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, errors.New("sent more than once")
	}
	key = strings.Trim(values[0], " \t")
	if strings.HasPrefix(key, `"`) {
		if key, err = unquoteKey(key); err != nil {
			return "", true, err
		}
	}
	return key, true, checkKey(key)
}

// unquoteKey reads a structured field's string, in which only the quote and
// the backslash are escaped.
func unquoteKey(quoted string) (string, error) {
	var key strings.Builder
	rest := quoted[1:]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"' && i == len(rest)-1:
			return key.String(), nil
		case c == '\\' && i+1 < len(rest) && (rest[i+1] == '"' || rest[i+1] == '\\'):
			i++
			key.WriteByte(rest[i])
		case c == '"' || c == '\\' || c < ' ' || c > '~':
			return "", errors.New("not a quoted string")
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("quote is not closed")
}
