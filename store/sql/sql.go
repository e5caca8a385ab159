// Package sql holds the statements of the store, one per file.
//
// The header of each file says what the statement does, which clock it reads,
// how it locks, what fences it and which index it uses.
package sql

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.sql
var files embed.FS

var texts, names = load()

func load() (texts, names map[string]string) {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("sql: " + err.Error())
	}
	texts, names = make(map[string]string, len(entries)), make(map[string]string, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			panic("sql: " + err.Error())
		}
		name := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		texts[name], names[string(text)] = string(text), name
	}
	return texts, names
}

// Text returns the statement in the file name.sql. It panics if there is no
// such file.
func Text(name string) string {
	text, ok := texts[name]
	if !ok {
		panic("sql: no statement " + name)
	}
	return text
}

// NameOf returns the name of a statement by its text, or "" for other text.
func NameOf(text string) string { return names[text] }
