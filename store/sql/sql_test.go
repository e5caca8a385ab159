package sql_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/sql"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEveryStatementIsOneStatementThatTheSchemaUnderstands(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(t.Context())) })
	_, err = conn.Exec(t.Context(), sql.Text("transfer_create_closure")) // the one table that no migration makes
	require.NoError(t, err)
	targets := scanTargets(t)
	require.Greater(t, len(targets), 20, "the search has found the structs")
	for _, name := range statements(t) {
		t.Run(name, func(t *testing.T) {
			// PostgreSQL refuses to prepare more than one statement.
			described, err := conn.Prepare(t.Context(), "", sql.Text(name))
			require.NoError(t, err)
			columns := make([]string, len(described.Fields))
			for i, field := range described.Fields {
				columns[i] = normalized(field.Name)
			}
			target, ok := targets[name]
			switch {
			case !ok:
				require.LessOrEqual(t, len(columns), 1, "a statement of many columns is read into a struct")
			case target.lax:
				require.Subset(t, target.fields, columns)
			default:
				require.ElementsMatch(t, target.fields, columns)
			}
		})
	}
}

func TestEveryStatementHasAFileAndEveryFileIsUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, call := range calls(t) {
		for _, argument := range call.Args {
			if name, ok := literal(argument); ok {
				used[name] = true
			}
		}
	}
	for _, name := range slices.Concat(fieldsOf(t, "settleVerbs"), []string{"submit", "submit_unkeyed", "submit_gated", "succeed_gated"}) {
		used[name] = true
	}
	for _, name := range statements(t) {
		require.True(t, used[name], "nobody uses %s", name)
	}
	require.Panics(t, func() { sql.Text("no such statement") })
}

func TestEveryHeaderSaysWhatItsStatementDoes(t *testing.T) {
	var (
		waits = regexp.MustCompile(`\bfor (?:update|share)\b`)
		clock = regexp.MustCompile(`\b(?:now|clock_timestamp)\(\)`)
		fence = regexp.MustCompile(`\blease_id = \w+\.lease_id`)
		// Statements of a function are not ours.
		function = regexp.MustCompile(`(?s)\$\$.*\$\$`)
	)
	for _, name := range statements(t) {
		t.Run(name, func(t *testing.T) {
			header, body := split(sql.Text(name))
			require.NotEmpty(t, header, "a header")
			require.NotContains(t, body, "--", "comments stand in the header")
			require.Equal(t, 1, strings.Count(function.ReplaceAllString(body, ""), ";"), "one statement")
			if writes.MatchString(body) || waits.MatchString(body) {
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

func TestEveryAdvisoryLockHasOneMeaning(t *testing.T) {
	number := regexp.MustCompile(`advisory_(?:xact_)?lock\((\d+)\)`)
	users := make(map[string][]string)
	for _, name := range statements(t) {
		_, body := split(sql.Text(name))
		for _, found := range number.FindAllStringSubmatch(body, -1) {
			if !slices.Contains(users[found[1]], name) {
				users[found[1]] = append(users[found[1]], name)
			}
		}
	}
	require.Equal(t, map[string][]string{
		"4653010": {"age_latencies", "age_tallies", "forget_tallies", "roll_up_tallies"},
		"4653011": {"lock_admission"},
		"4653012": {"lock_ageing"},
		"4653013": {"tidy_unique"},
		"4653014": {"lock_following"},
		"4653018": {"lock_settings"},
		"4653019": {"lock_transfer"},
		"4653017": {"delete_dead", "delete_ended"},
	}, users)
	header, _ := split(sql.Text("lock_admission"))
	for one := range users {
		require.Contains(t, header, one, "the header that lists them")
	}
}

// The submit statements must have the same effect.
func TestSubmissionsAreReadAlikeWithKeysAndGatesAndWithout(t *testing.T) {
	read := func(name string) string {
		_, text, _ := strings.Cut(sql.Text(name), "with input as (")
		input, _, found := strings.Cut(text, "), written as (")
		require.True(t, found)
		return strings.NewReplacer(
			",\n        $15::text[]", "", ",\n        idempotency_key", "",
			",\n        $16::text[], $17::text[], $18::timestamptz[], $19::interval[]", "", ",\n        gates, terms, expires_at, ttl", "",
			",\n        $20::bytea[], $21::uuid[], $22::boolean[], $23::text[], $24::uuid[]", "", ",\n        digest, parent_id, followed, callback_url, resubmission_of", "",
		).Replace(input)
	}
	stored := func(name string) string {
		_, text, _ := strings.Cut(sql.Text(name), "), written as (")
		_, text, _ = strings.Cut(text, "    select\n")
		values, _, found := strings.Cut(text, "    from due\n")
		require.True(t, found)
		values, _, _ = strings.Cut(values, ",\n        case when gates is not null")
		return strings.ReplaceAll(strings.TrimSpace(values), "idempotency_key, ", "")
	}
	listed := func(name string) string {
		_, text, _ := strings.Cut(sql.Text(name), "), queued as (")
		return strings.ReplaceAll(cut(t, text, "), gated as (", "), waiting as ("), " and gates is null", "")
	}
	require.Equal(t, read("submit"), read("submit_gated"))
	require.Equal(t, stored("submit"), stored("submit_gated"))
	require.Equal(t, listed("submit"), listed("submit_gated"))
	require.Equal(t, read("submit"), read("submit_unkeyed"))
	require.Equal(t, stored("submit"), stored("submit_unkeyed"))
}

func TestSuccessesAreSettledAlikeWithGatesAndWithout(t *testing.T) {
	_, plain := split(sql.Text("succeed"))
	_, gated := split(sql.Text("succeed_gated"))
	require.Equal(t, plain, strings.ReplaceAll(cut(t, gated, "), woken as (", "), tallied as ("), ", j.gates, j.job_id, j.followed", ""))
}

func TestDeadLettersAreGroupedAlikeForATenantAndForAll(t *testing.T) {
	_, all := split(sql.Text("dead_letter_groups"))
	_, tenant := split(sql.Text("dead_letter_groups_of_tenant"))
	require.Equal(t, all, strings.NewReplacer(
		"d.tenant = g.tenant and ", "", " and w.tenant = $7", "", " and g.tenant = $7", "", "$7::text, ", "",
		"d.tenant, ", "", "g.tenant, ", "", "w.tenant, ", "", "next.tenant, ", "", "tenant, ", "",
	).Replace(tenant))
}

// cut removes the text from one mark up to another; there is nothing to remove if it has no
// first mark.
func cut(t testing.TB, text, from, to string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, from)
	if !found {
		return text
	}
	_, after, found := strings.Cut(rest, to)
	require.True(t, found)
	return before + to + after
}

// Only the owner of a lease may write what the lease protects.
func TestEveryWayOutOfRunningIsFenced(t *testing.T) {
	verbs := fieldsOf(t, "settleVerbs")
	require.Len(t, verbs, 5)
	for _, verb := range append(verbs, "succeed_gated", "park_claim") {
		require.Contains(t, sql.Text(verb), "where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id", verb)
	}
	for _, name := range []string{"renew", "save_progress", "save_logs"} {
		require.Regexp(t, `l\.job_id between \w+\.job_id and \w+\.job_id and l\.lease_id = \w+\.lease_id`, sql.Text(name))
	}
}

// Every change of the database goes through postgres.Write: only Write notices a
// commit that did not wait for its standby, and only Write never cancels a statement.
// A hint is no change, and a transaction that never commits waits for nobody.
func TestOnlyWriteSendsStatementsThatChangeSomething(t *testing.T) {
	changes := regexp.MustCompile(writes.String() + `|pg_logical_emit_message`)
	for _, call := range calls(t) {
		verb, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if verb.Sel.Name == "Read" || verb.Sel.Name == "Rows" {
			for _, argument := range call.Args {
				if name, ok := literal(argument); ok && slices.Contains(statements(t), name) {
					_, body := split(sql.Text(name))
					require.False(t, changes.MatchString(body), "%s is sent without Write", name)
				}
			}
		}
		// s.db.Worker.Query, unlike conn.Query in a function that Write calls
		pool, ok := verb.X.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Query", "QueryRow", "Exec", "SendBatch"}, verb.Sel.Name) {
			continue
		}
		require.NotEqual(t, "SendBatch", verb.Sel.Name)
		for _, argument := range call.Args {
			text, ok := argument.(*ast.CallExpr)
			if !ok {
				continue
			}
			if name, ok := literal(text.Args[0]); ok {
				_, body := split(sql.Text(name))
				require.False(t, changes.MatchString(body), "%s is sent on %s without Write", name, pool.Sel.Name)
			}
		}
	}
}

// writes matches a statement, or a part of one, that changes rows.
var writes = regexp.MustCompile(`(?m)^\s*(?:\w+ as (?:materialized )?\(\s*)?(?:insert into|update|delete from) `)

// statements are the names of all files.
func statements(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(path, ".sql")
	}
	return paths
}

// split separates the comment at the top of a file from the statement.
func split(text string) (header, body string) {
	lines := strings.SplitAfter(text, "\n")
	n := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "--") })
	return "\n" + strings.Join(lines[:n], ""), strings.Join(lines[n:], "")
}

// rooms are the packages that run statements or declare the types of rows.
var rooms = []string{"../../api/v1", "..", "../doctor", "../postgres", "../transfer", "../../runtime/job"}

func sources(t testing.TB) []*ast.File {
	t.Helper()
	var parsed []*ast.File
	for _, room := range rooms {
		entries, err := os.ReadDir(room)
		require.NoError(t, err)
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(room, entry.Name()), nil, 0)
			require.NoError(t, err)
			parsed = append(parsed, file)
		}
	}
	return parsed
}

func calls(t testing.TB) (all []*ast.CallExpr) {
	t.Helper()
	for _, file := range sources(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				all = append(all, call)
			}
			return true
		})
	}
	return all
}

// fieldsOf are the first fields of the structs in a slice variable.
func fieldsOf(t testing.TB, variable string) (first []string) {
	t.Helper()
	for _, file := range sources(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != variable {
				return true
			}
			for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
				name, _ := literal(element.(*ast.CompositeLit).Elts[0])
				first = append(first, name)
			}
			return false
		})
	}
	return first
}

func literal(expression ast.Expr) (string, bool) {
	value, ok := expression.(*ast.BasicLit)
	if !ok || value.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(value.Value)
	return text, err == nil
}

// target is the struct that receives a statement's rows.
type target struct {
	fields []string // normalized
	lax    bool     // it may have more fields than columns
}

// scanTargets finds in the source which struct receives each statement's rows.
func scanTargets(t testing.TB) map[string]target {
	t.Helper()
	found := make(map[string]target)
	files := sources(t)
	known := structsIn(files)
	for _, file := range files {
		for _, declaration := range file.Decls {
			structs := maps.Clone(known)
			maps.Copy(structs, structsIn([]*ast.File{{Name: file.Name, Decls: []ast.Decl{declaration}}}))
			ast.Inspect(declaration, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				var statement string
				var into *target
				for _, argument := range call.Args {
					if name, ok := literal(argument); ok {
						statement = name
					}
					if index, ok := argument.(*ast.IndexExpr); ok {
						if scanner, ok := index.X.(*ast.SelectorExpr); ok && strings.HasPrefix(scanner.Sel.Name, "RowToStructByName") {
							into = &target{fields: fieldNames(t, structs, index.Index), lax: strings.HasSuffix(scanner.Sel.Name, "Lax")}
						}
					}
				}
				if statement != "" && into != nil {
					found[statement] = *into
				}
				return true
			})
		}
	}
	// These share a method with others.
	found["submit"] = target{fields: fieldNames(t, known, ast.NewIdent("submittedRow"))}
	found["submit_gated"] = found["submit"]
	found["submit_unkeyed"] = target{fields: fieldNames(t, known, ast.NewIdent("unkeyedRow"))}
	found["types"] = target{fields: fieldNames(t, known, ast.NewIdent("TypeSpec"))}
	found["claim"] = target{fields: columnsOf(t, "claimedRow")}
	found["heads"] = target{fields: columnsOf(t, "headRow")}
	for _, name := range []string{"metrics_attempts", "metrics_final", "metrics_recent"} { // read by position
		_, body := split(sql.Text(name))
		found[name] = target{fields: []string{normalized(regexp.MustCompile(`(\w+),(?: sum\(jobs\)| count\(\*\))`).FindStringSubmatch(body)[1]), "jobs"}}
	}
	return found
}

// structsIn returns the struct types by name, including those inside functions, and
// also by the name with its package.
func structsIn(files []*ast.File) map[string]*ast.StructType {
	structs := make(map[string]*ast.StructType)
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if structType, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = structType
					structs[file.Name.Name+"."+spec.Name.Name] = structType
				}
			}
			return true
		})
	}
	return structs
}

func fieldNames(t testing.TB, structs map[string]*ast.StructType, of ast.Expr) (fields []string) {
	t.Helper()
	name := types.ExprString(of)
	structType, ok := structs[name]
	require.True(t, ok, "%s is no struct", name)
	for _, field := range structType.Fields.List {
		if len(field.Names) == 0 {
			fields = append(fields, fieldNames(t, structs, field.Type)...)
		}
		for _, name := range field.Names {
			if !name.IsExported() {
				continue // pgx does not fill it in
			}
			text := name.Name
			if field.Tag != nil {
				if tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("db"); tag != "" {
					text = tag
				}
			}
			fields = append(fields, normalized(text))
		}
	}
	return fields
}

// columnsOf are the keys of the map from columns to fields of a row.
func columnsOf(t testing.TB, row string) (columns []string) {
	t.Helper()
	for _, file := range sources(t) {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Name.Name != "columns" || function.Recv == nil || receiver(function) != row {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				if pair, ok := node.(*ast.KeyValueExpr); ok {
					if name, ok := literal(pair.Key); ok {
						columns = append(columns, normalized(name))
					}
				}
				return true
			})
		}
	}
	return columns
}

// receiver is the name of the type that the method has a pointer to.
func receiver(method *ast.FuncDecl) string {
	if pointer, ok := method.Recv.List[0].Type.(*ast.StarExpr); ok {
		if name, ok := pointer.X.(*ast.Ident); ok {
			return name.Name
		}
	}
	return ""
}

// normalized changes the names of columns and fields as pgx does to compare them.
func normalized(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}
