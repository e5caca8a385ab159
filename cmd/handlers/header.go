package main

import (
	"fmt"

	"golang.org/x/net/http/httpguts"
)

// checkHeader refuses what is not one header line, in HTTP and in mail: with a line
// break, a payload could add other headers.
func checkHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("header %.40q: the name is empty or holds a character that names cannot have", name)
	}
	return checkLine("header "+name, value)
}

// checkLine refuses control characters.
func checkLine(what, text string) error {
	if !httpguts.ValidHeaderFieldValue(text) {
		return fmt.Errorf("%s holds a control character", what)
	}
	return nil
}
