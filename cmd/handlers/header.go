package main

import (
	"errors"
	"fmt"
	"strings"
)

// checkHeader refuses what is not one header line, in HTTP and in mail: with a line
// break, a payload could add other headers.
func checkHeader(name, value string) error {
	if name == "" {
		return errors.New("a header has no name")
	}
	for _, r := range name {
		if !isTokenChar(r) {
			return fmt.Errorf("header %.40q: the name holds %q", name, r)
		}
	}
	return checkLine("header "+name, value)
}

// checkLine refuses control characters.
func checkLine(what, value string) error {
	for _, r := range value {
		if r < ' ' && r != '\t' || r == 0x7f {
			return fmt.Errorf("%s holds a control character", what)
		}
	}
	return nil
}

// isTokenChar is RFC 9110's tchar.
func isTokenChar(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
