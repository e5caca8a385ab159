package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// quoted is for how many violations of each invariant the evidence is shown, too, up to so
	// many lines of each and so many bytes of a line.
	quoted      = 2
	quotedLines = 6
	quotedWidth = 400
)

// quote prints the lines of the record that show the first violations, so that whoever does
// not have the record can see what happened.
func quote(out io.Writer, dir string, verdicts []verdict) error {
	wanted := make(map[string]map[int]string) // by file and number
	var order []string
	for _, v := range verdicts {
		for _, violation := range v.Violations[:min(quoted, len(v.Violations))] {
			for _, at := range violation.Evidence[:min(quotedLines, len(violation.Evidence))] {
				file, number, ok := strings.Cut(at, ":")
				n, err := strconv.Atoi(number)
				if !ok || err != nil || wanted[file][n] != "" {
					continue
				}
				if wanted[file] == nil {
					wanted[file] = make(map[int]string)
				}
				wanted[file][n] = at
				order = append(order, at)
			}
		}
	}
	texts := make(map[string]string)
	for file, numbers := range wanted {
		if err := find(filepath.Join(dir, file), numbers, texts); err != nil {
			return err
		}
	}
	for _, at := range order {
		fmt.Fprintf(out, "%s: %s\n", at, texts[at])
	}
	return nil
}

// find adds the lines of the file with the numbers to the texts.
func find(path string, numbers map[int]string, texts map[string]string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if at := numbers[number]; at != "" {
			line = bytes.TrimSpace(line)
			texts[at] = string(line[:min(len(line), quotedWidth)])
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}
