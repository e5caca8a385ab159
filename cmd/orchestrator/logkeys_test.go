package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// before says how many arguments of a logging method come before the keys.
var before = map[string]int{
	"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3,
}

// computed are the files in which a key may be computed: an outcome, below
// attempts, and what another log has chosen.
var computed = []string{"../../runtime/attemptlog.go", "../../cmd/orchestrator/log.go"}

// logKeys returns the keys that the program logs under, each with a place where
// it does.
func logKeys(t *testing.T) map[string]string {
	t.Helper()
	keys := make(map[string]string)
	for _, root := range []string{"../../api", "../../cmd/orchestrator", "../../plugin/host", "../../runtime", "../../store"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					for _, key := range keysOf(call) {
						at := files.Position(key.Pos()).String()
						if literal, ok := key.(*ast.BasicLit); ok {
							name, err := strconv.Unquote(literal.Value)
							require.NoError(t, err, at)
							keys[name] = at
						} else {
							require.Contains(t, computed, path, "%s: a key is not a constant", at)
						}
					}
				}
				return true
			})
			return nil
		}))
	}
	return keys
}

// keysOf returns the keys among the arguments of a call.
func keysOf(call *ast.CallExpr) (keys []ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if fromPackage(method) {
		switch method.Sel.Name {
		case "String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group":
			return call.Args[:1]
		}
	}
	skip, ok := before[method.Sel.Name]
	if !ok || !isLog(method.X) || len(call.Args) < skip {
		return nil
	}
	for rest := call.Args[skip:]; len(rest) > 0; {
		if made, ok := rest[0].(*ast.CallExpr); ok { // an attribute, which is found by itself
			if of, ok := made.Fun.(*ast.SelectorExpr); ok && fromPackage(of) {
				rest = rest[1:]
				continue
			}
		}
		keys = append(keys, rest[0])
		rest = rest[min(2, len(rest)):]
	}
	return keys
}

func fromPackage(of *ast.SelectorExpr) bool {
	name, ok := of.X.(*ast.Ident)
	return ok && name.Name == "slog"
}

// isLog reports whether an expression is a log, by its name.
func isLog(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return strings.EqualFold(of.Name, "log") || of.Name == "slog"
	case *ast.SelectorExpr:
		return strings.EqualFold(of.Sel.Name, "log")
	}
	return false
}

func TestTheDocumentationListsAllKeysOfTheLog(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/telemetry.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| key | meaning |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for _, row := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		documented = append(documented, strings.Trim(strings.Split(row, "|")[1], " `"))
	}
	logged := logKeys(t)
	snake := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for key, at := range logged {
		require.Regexp(t, snake, key, at)
		require.Contains(t, documented, key, at)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(logged)), documented)
}
