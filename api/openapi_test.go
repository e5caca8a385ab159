package api_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	humayaml "github.com/danielgtaylor/huma/v2/yaml"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/test/describe"
)

// generated is the description that the code of the API and test/describe make, as JSON
// and as YAML.
var generated = sync.OnceValue(func() (text struct{ json, yaml []byte }) {
	document := api.Document(api.Config{Jobs: newLedger(), Operations: newLedger()})
	describe.API(document)
	var err error
	if text.json, err = json.Marshal(document); err == nil {
		text.yaml, err = document.YAML()
	}
	if err != nil {
		panic(err)
	}
	return text
})

func TestTheDescriptionIsCurrent(t *testing.T) {
	const file = "openapi.yaml"
	if *update {
		require.NoError(t, os.WriteFile(file, generated().yaml, 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(generated().yaml),
		"the description has changed; when that was meant: go test ./api -run Description -update")
}

// Only the version, and which operations need credentials, depend on the server.
func TestTheServerServesTheDescription(t *testing.T) {
	for version, g := range map[string]*guard.Guard{
		"development": guard.New(guard.Config{Access: accessFor(false)}),
		"closed":      guard.New(guard.Config{Access: accessFor(true)}),
		"1.10":        nil,
	} {
		h := api.New(api.Config{Jobs: newLedger(), Guard: g, Log: slog.New(slog.DiscardHandler), Version: version})
		get := func(path string) *bytes.Buffer {
			answer := send(h, "GET", path, "", "Authorization: "+who["basic"].header)
			require.Equal(t, 200, answer.Code)
			return answer.Body
		}
		served := get("/openapi.yaml").Bytes()
		if version == "development" {
			require.Equal(t, string(api.Description), string(served))
		}
		require.Equal(t, withoutDifferences(t, "development", api.Description), withoutDifferences(t, version, served))
		var fromJSON bytes.Buffer
		require.NoError(t, humayaml.Convert(&fromJSON, get("/openapi.json")))
		require.Equal(t, string(served), fromJSON.String())
	}
}

func withoutDifferences(t *testing.T, version string, text []byte) map[string]any {
	t.Helper()
	var document map[string]any
	require.NoError(t, yaml.Unmarshal(text, &document))
	info := document["info"].(map[string]any)
	require.Equal(t, version, info["version"])
	delete(info, "version")
	for _, path := range document["paths"].(map[string]any) {
		for _, operation := range path.(map[string]any) {
			delete(operation.(map[string]any), "security")
		}
	}
	return document
}

func TestEveryOperationIsDescribed(t *testing.T) {
	for route, o := range described(t).operations {
		need := func(there bool, what string) {
			if !there {
				t.Errorf("%s (%s): %s", route, o.OperationID, what)
			}
		}
		need(o.OperationID != "", "needs an OperationID")
		need(o.Summary != "" && !strings.HasSuffix(o.Summary, "."), "needs a Summary, without a full stop")
		text, _, _ := strings.Cut(o.Description, "\n\nNeeds the scope ")
		need(strings.HasSuffix(text, "."), "needs a Description, in sentences")
		need(len(o.Tags) == 1 && slices.Contains(described(t).chapters, o.Tags[0]), "needs one of the chapters in test/describe/describe.go")
		for _, p := range o.Parameters {
			need(p.Description != "", "its parameter "+p.Name+" needs a doc tag")
			need(p.Example != nil, "its parameter "+p.Name+" needs an example in sampleParameters, test/describe/samples.go")
		}
		for media, body := range o.RequestBody.Content {
			need(len(body.Examples) > 0, "needs a request of "+media+" in test/describe")
		}
		succeeds := false
		for status, answer := range o.Responses {
			succeeds = succeeds || status[0] == '2'
			need(answer.Description != "", "its answer "+status+" needs a description")
			for media, body := range answer.Content {
				need(body.Schema != nil, "its answer "+status+" of "+media+" needs a schema")
				need(body.Example != nil || status == "default", "needs an answer "+status+" of "+media+" in test/describe")
			}
		}
		need(succeeds, "needs a success")
	}
}

// A shared schema is named by its exact words. If a tag in api/v1 differs from Go, no
// field has the words of the schema.
func TestSetsOfWordsAreDescribedOnce(t *testing.T) {
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	require.NoError(t, json.Unmarshal(generated().json, &document))
	for _, name := range []string{"Status", "State", "Outcome", "OnConflict", "Severity"} {
		require.Contains(t, document.Components.Schemas, name, "nothing has exactly these words")
	}
}

func TestEveryExampleFitsItsSchema(t *testing.T) {
	d := described(t)
	for route, o := range d.operations {
		for media, body := range o.RequestBody.Content {
			for name, example := range body.Examples {
				d.requireFit(t, route+": request "+name, media, body, []byte(textOf(t, example.Value)))
			}
		}
		for status, answer := range o.Responses {
			for media, body := range answer.Content {
				if body.Example != nil {
					d.requireFit(t, route+": answer "+status, media, body, []byte(textOf(t, body.Example)))
				}
			}
		}
		for _, p := range o.Parameters {
			text, err := json.Marshal(p.Example)
			require.NoError(t, err)
			d.requireFit(t, route+": parameter "+p.Name, "application/json", mediaType{Schema: p.Schema}, text)
		}
	}
}

// textOf is the text of an example, as it is sent.
func textOf(t *testing.T, example any) string {
	t.Helper()
	if text, ok := example.(string); ok {
		return text
	}
	text, err := json.Marshal(example)
	require.NoError(t, err)
	return string(text)
}

func TestNoOperationTakesAParameterThatItDoesNotKnow(t *testing.T) {
	l, p := newLedger(), somePlugins()
	h := documented(t, api.New(api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Workflows: l, AllPlugins: l, Plugins: p, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 4096, MaxBatchBytes: 4096, RequestTimeout: time.Minute,
	}))
	for route := range described(t).operations {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{id}", strings.TrimPrefix(known, "/jobs/"), "{name}", "idle", "{type}", "A").Replace(path)
		for query, message := range map[string]string{"dry=true": "is not known", "a=%zz": "cannot be read"} {
			answer := send(h, method, path+"?"+query, minimal)
			require.Equal(t, 422, answer.Code, "%s?%s: %s", route, query, answer.Body)
			require.Contains(t, answer.Body.String(), message, route)
		}
	}
	require.Empty(t, p.asked)
	require.Empty(t, l.submitted)
}

// A filter in a body that nobody reads would be no filter.
func TestAnOperationThatTakesNoBodyRefusesOne(t *testing.T) {
	const refusal = " takes no body"
	for route, operation := range described(t).operations {
		l, p := newLedger(), somePlugins()
		h := documented(t, api.New(api.Config{
			Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Workflows: l, AllPlugins: l, Plugins: p, Log: slog.New(slog.DiscardHandler), Version: "test",
			MaxBodyBytes: 4096, MaxBatchBytes: 4096, RequestTimeout: time.Minute,
		}))
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{id}", strings.TrimPrefix(known, "/jobs/"), "{name}", "idle", "{type}", "A").Replace(path)
		if method == "GET" || len(operation.RequestBody.Content) > 0 {
			if method != "GET" {
				require.NotContains(t, send(h, method, path, `{"reason": ""}`).Body.String(), refusal, route)
			}
			continue
		}
		for _, said := range []string{`{"jobIds": ["a"]}`, `["a"]`, `limit=5`, `{`, `"` + strings.Repeat("a", 1000) + `"`} {
			answer := send(h, method, path, said)
			require.Equal(t, 422, answer.Code, "%s: %s", route, answer.Body)
			require.Contains(t, answer.Body.String(), route+refusal)
		}
		require.Zero(t, l.limit, route)
		require.Empty(t, p.asked, route)
		for _, nothing := range []string{"", "{}", " { }\n", "null", "\n"} {
			require.NotContains(t, send(h, method, path, nothing).Body.String(), refusal, "%s %q", route, nothing)
		}
	}
	answer := send(newAPI(t, newLedger()), "POST", "/dead-letter/retry", `{"jobIds": ["a"]}`)
	require.Contains(t, answer.Body.String(), "send query parameters, which are errorCode, fingerprint, jobType, limit, tenant")
}

func TestGeneratorsFindTheirWayInTheDescription(t *testing.T) {
	text := string(generated().json)
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	require.NotContains(t, document.Components.Schemas, "Handler", "ogen has an interface of that name")
	for name := range document.Components.Schemas {
		require.Contains(t, text, `"#/components/schemas/`+name+`"`, "nobody refers to it")
	}
	require.False(t, strings.Contains(text, `"type":[`), "not every generator knows a list of types")
}

// Huma makes every list in an answer nullable unless its field is tagged otherwise.
func TestOnlyTheMembersOfRequestsMayBeNull(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(generated().json, &document))
	var nullable []string
	for name, schema := range document.Components.Schemas {
		for member, described := range schema.Properties {
			text, err := json.Marshal(described)
			require.NoError(t, err)
			if strings.Contains(string(text), `"null"`) {
				nullable = append(nullable, name+"."+member)
			}
		}
	}
	submission := []string{
		"Submission.delay", "Submission.hold", "Submission.idempotencyKey", "Submission.maxAttempts", "Submission.priority",
		"Submission.runAt", "Submission.tags", "Submission.tenant", "Submission.timeout", "Submission.concurrencyKey",
		"Submission.concurrencyLimit", "Submission.onConflict", "Submission.fairnessKey", "Submission.expiresAt", "Submission.ttl",
		"Submission.uniqueFor", "Submission.uniqueWhile", "Submission.uniqueBy", "Submission.callbackUrl",
	}
	want := []string{
		"Edit.priority", "Edit.tags", "WorkflowJob.name", "WorkflowJob.after", "WorkflowJob.onDeath",
		"WorkflowSubmission.name", "WorkflowSubmission.idempotencyKey", "WorkflowSubmission.tenant",
	}
	for _, member := range submission {
		want = append(want, member, strings.Replace(member, "Submission", "WorkflowJob", 1))
		if member != "Submission.tenant" {
			want = append(want, strings.Replace(member, "Submission", "Resubmission", 1))
		}
	}
	require.ElementsMatch(t, want, nullable)
}

func TestNoParameterMayBeEmpty(t *testing.T) {
	l, p, d := newLedger(), somePlugins(), described(t)
	h := documented(t, api.New(api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Workflows: l, AllPlugins: l, Plugins: p, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 4096, MaxBatchBytes: 4096, RequestTimeout: time.Minute,
	}))
	for route, o := range d.operations {
		for _, parameter := range o.Parameters {
			compiled, err := d.compile(parameter.Schema)
			require.NoError(t, err)
			require.Error(t, compiled.Validate(""), "%s: an empty %s is described as possible", route, parameter.Name)

			method, path, _ := strings.Cut(route, " ")
			var header []string
			switch parameter.In {
			case "path":
				path = strings.ReplaceAll(path, "{"+parameter.Name+"}", "")
			case "query":
				path += "?" + parameter.Name + "="
			case "header":
				header = []string{parameter.Name + ": "}
			}
			path = strings.NewReplacer("{id}", strings.TrimPrefix(known, "/jobs/"), "{name}", "idle", "{type}", "A").Replace(path)
			answer := send(h, method, path, minimal, header...)
			require.Contains(t, []int{404, 422}, answer.Code, "%s: empty %s: %s", route, parameter.Name, answer.Body)
		}
	}
	require.Empty(t, p.asked)
	require.Empty(t, l.submitted)
}

func TestEachTagOfASubmissionIsBounded(t *testing.T) {
	schema := map[string]any{"$ref": "#/components/schemas/Submission"}
	compiled, err := described(t).compile(schema)
	require.NoError(t, err)
	submission := func(tag string) any { return map[string]any{"jobType": "A", "tags": []any{tag}} }
	require.NoError(t, compiled.Validate(submission(strings.Repeat("x", 100))))
	require.Error(t, compiled.Validate(submission(strings.Repeat("x", 101))))
	require.Error(t, compiled.Validate(submission("")))
}
