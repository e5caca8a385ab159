package store

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

func TestEveryStatementIsOneStatementThatTheSchemaUnderstands(t *testing.T) {
	conn := connect(t, storetest.URL(t))
	structs := rowStructs(t)
	for name, text := range statementFiles(t) {
		t.Run(name, func(t *testing.T) {
			// PostgreSQL refuses to prepare more than one statement.
			described, err := conn.Prepare(t.Context(), "", text)
			require.NoError(t, err)
			fields, ok := structs[name]
			if !ok {
				require.LessOrEqual(t, len(described.Fields), 1, "a statement of many columns is read into a struct")
				return
			}
			require.Equal(t, fields, sorted(described.Fields, func(f pgconn.FieldDescription) string {
				return normalized(f.Name)
			}))
		})
	}
}

func TestEveryFileHasItsVariableAndEveryVariableItsFile(t *testing.T) {
	var declared []string
	for _, file := range sources(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "statement" {
				declared = append(declared, strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`))
			}
			return true
		})
	}
	slices.Sort(declared)
	require.Equal(t, slices.Sorted(maps.Keys(statementFiles(t))), declared)
}

func TestEveryHeaderSaysWhatItsStatementDoes(t *testing.T) {
	var (
		writes = regexp.MustCompile(`(?m)^\s*(?:\w+ as (?:materialized )?\(\s*)?(?:insert into|update|delete from) `)
		waits  = regexp.MustCompile(`\bfor (?:update|share)\b`)
		clock  = regexp.MustCompile(`\b(?:now|clock_timestamp)\(\)`)
		fence  = regexp.MustCompile(`\blease_id = \w+\.lease_id`)
	)
	for name, text := range statementFiles(t) {
		t.Run(name, func(t *testing.T) {
			header, body := split(text)
			require.NotEmpty(t, header, "a header")
			require.NotContains(t, body, "--", "comments stand in the header")
			require.Equal(t, 1, strings.Count(body, ";"), "one statement")
			changes := writes.MatchString(body) || waits.MatchString(body)
			if changes {
				require.Contains(t, header, "\n-- Locks:")
				require.Contains(t, header, "\n-- Index:")
				if fence.MatchString(body) {
					require.Contains(t, header, "Fence:")
				}
			}
			if clock.MatchString(body) {
				require.Contains(t, header, "Clock:")
			}
		})
	}
}

// There are two statements to submit with, and one meaning.
func TestWhatIsSubmittedIsReadAlikeWithAKeyAndWithout(t *testing.T) {
	read := func(sql string) string {
		_, sql, _ = strings.Cut(sql, "with input as (")
		input, _, found := strings.Cut(sql, "), written as (")
		require.True(t, found)
		return strings.NewReplacer(",\n        $15::text[]", "", ",\n        idempotency_key", "").Replace(input)
	}
	stored := func(sql string) string {
		_, sql, _ = strings.Cut(sql, "), written as (")
		_, sql, _ = strings.Cut(sql, "    select\n")
		values, _, found := strings.Cut(sql, "    from due\n")
		require.True(t, found)
		return strings.ReplaceAll(values, "idempotency_key, ", "")
	}
	require.Equal(t, read(submitSQL), read(submitUnkeyedSQL))
	require.Equal(t, stored(submitSQL), stored(submitUnkeyedSQL))
}

// What a lease protects may only be written by whoever shows it.
func TestEveryWayOutOfRunningIsFenced(t *testing.T) {
	for _, verb := range settleVerbs {
		require.Contains(t, verb.sql, "where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id", verb.name)
	}
	for _, sql := range []string{renewSQL, noteSQL, keepLogsSQL} {
		require.Regexp(t, `l\.job_id between \w+\.job_id and \w+\.job_id and l\.lease_id = \w+\.lease_id`, sql)
	}
}

func TestNoStatementIsRunUnderAPlannersWhim(t *testing.T) {
	s := open(t)
	for setting, value := range sessionSettings {
		for name, pool := range pools(s) {
			want := value
			if name == "read" {
				want = readSettings()[setting]
			}
			require.Equal(t, want, ask[string](t, &Store{worker: pool}, "select current_setting($1)", setting), name)
		}
	}
}

// A pooler in between has to be told of each.
func TestTheSettingsOfASessionAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/postgresql.md")
	require.NoError(t, err)
	ignored := regexp.MustCompile(`ignore_startup_parameters = (\S+)`).FindSubmatch(page)
	require.NotNil(t, ignored)
	require.ElementsMatch(t, slices.DeleteFunc(slices.Collect(maps.Keys(sessionSettings)), func(name string) bool {
		return name == "timezone" // that one is passed on
	}), strings.Split(string(ignored[1]), ","))
	for name, value := range sessionSettings {
		if name != "timezone" {
			require.Regexp(t, "alter role holdfast set "+name+" = '?"+value+"'?;", string(page))
		}
	}
}

func statementFiles(t testing.TB) map[string]string {
	t.Helper()
	entries, err := fs.ReadDir(files, "sql")
	require.NoError(t, err)
	texts := make(map[string]string, len(entries))
	for _, entry := range entries {
		text, err := fs.ReadFile(files, "sql/"+entry.Name())
		require.NoError(t, err)
		texts[strings.TrimSuffix(entry.Name(), ".sql")] = string(text)
	}
	return texts
}

// split separates the comment at the top of a file from the statement.
func split(text string) (header, body string) {
	lines := strings.SplitAfter(text, "\n")
	n := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "--") })
	return "\n" + strings.Join(lines[:n], ""), strings.Join(lines[n:], "")
}

func sources(t testing.TB) map[string]*ast.File {
	t.Helper()
	parsed := make(map[string]*ast.File)
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
	}
	return parsed
}

// rowStructs reads from the source which struct each statement's rows are
// scanned into, as sorted normalized field names: the struct that the function
// naming the statement declares or instantiates pgx.RowToStructByName with.
func rowStructs(t testing.TB) map[string][]string {
	t.Helper()
	structs := make(map[string]*ast.StructType)
	named := make(map[string]string)
	for path, file := range sources(t) {
		for _, declaration := range file.Decls {
			collect(declaration, path, structs, named)
		}
	}
	// These go through a method that several verbs share.
	named["submit"], named["submit_unkeyed"], named["submitted"] = "submittedRow", "unkeyedRow", "submittedRow"
	found := map[string][]string{
		"claim": sorted(slices.Collect(maps.Keys(new(claimedRow).columns())), normalized),
	}
	for statement, of := range named {
		structType, ok := structs[of]
		require.True(t, ok, "%s is read into %s, which is no struct", statement, of)
		var fields []string
		for _, field := range structType.Fields.List {
			for _, name := range field.Names {
				text := name.Name
				if field.Tag != nil {
					text = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("db")
				}
				fields = append(fields, normalized(text))
			}
			if len(field.Names) == 0 {
				for _, embedded := range structs[field.Type.(*ast.Ident).Name].Fields.List {
					fields = append(fields, normalized(embedded.Names[0].Name))
				}
			}
		}
		slices.Sort(fields)
		found[statement] = fields
	}
	require.Greater(t, len(found), 10, "the search has found the structs")
	return found
}

// collect notes the structs of one declaration, and which of them its
// statement is read into.
func collect(declaration ast.Decl, path string, structs map[string]*ast.StructType, named map[string]string) {
	scope := path
	function, isFunction := declaration.(*ast.FuncDecl)
	if isFunction {
		scope += "." + function.Name.Name
	}
	var statement, into string
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.TypeSpec:
			if structType, ok := node.Type.(*ast.StructType); ok {
				name := node.Name.Name
				if isFunction {
					name = scope + "." + name
				}
				structs[name] = structType
			}
		case *ast.IndexExpr:
			selector, ok := node.X.(*ast.SelectorExpr)
			if ok && selector.Sel.Name == "RowToStructByName" {
				into = node.Index.(*ast.Ident).Name
			}
		case *ast.Ident:
			if name, ok := strings.CutSuffix(node.Name, "SQL"); ok && isFunction {
				statement = snake(name)
			}
		}
		return true
	})
	if statement == "" || into == "" {
		return
	}
	if _, local := structs[scope+"."+into]; local {
		into = scope + "." + into
	}
	named[statement] = into
}

var capital = regexp.MustCompile(`[A-Z]`)

func snake(name string) string {
	return capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
}

// normalized is how pgx compares the name of a column with that of a field.
func normalized(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

func sorted[T any, K cmp.Ordered](list []T, of func(T) K) []K {
	keys := make([]K, len(list))
	for i, element := range list {
		keys[i] = of(element)
	}
	slices.Sort(keys)
	return keys
}

// Whatever changes the database goes through write: only there is a commit that did
// not wait for its standby noticed, and no statement canceled. A hint is no change,
// and a transaction that is never committed waits for nobody.
func TestOnlyWriteSendsStatementsThatChangeSomething(t *testing.T) {
	changes := regexp.MustCompile(`(?m)^\s*(?:\w+ as (?:materialized )?\(\s*)?(?:insert into|update|delete from) |pg_logical_emit_message`)
	texts := statementFiles(t)
	for path, file := range sources(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			verb, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Query", "QueryRow", "Exec", "SendBatch"}, verb.Sel.Name) {
				return true
			}
			pool, ok := verb.X.(*ast.SelectorExpr) // s.reads, not the connection that write gives
			if !ok {
				return true
			}
			require.NotEqual(t, "SendBatch", verb.Sel.Name, path)
			for _, argument := range call.Args {
				if name, ok := argument.(*ast.Ident); ok && strings.HasSuffix(name.Name, "SQL") {
					_, body := split(texts[snake(strings.TrimSuffix(name.Name, "SQL"))])
					require.False(t, changes.MatchString(body), "%s sends %s on %s without write", path, name.Name, pool.Sel.Name)
				}
			}
			return true
		})
	}
}
