package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// tables has everything that spans may contain, as "span process", "attribute job.id of
// send", "event job.killed", "link request", and whether a span contained it.
type tables struct {
	kinds map[string]otlp.Span_SpanKind
	mu    sync.Mutex
	told  map[string]bool
}

// untold lists what no story produces, or only if it happens to be slow, and the test that
// always does.
var untold = map[string]string{
	"attribute job.outcome of queue wait": "runtime/spans: TestAnAttemptWhoseHandlerNeverBeganIsAWaitWithTheLinkedID",
	"attribute job.reason of queue wait":  "runtime: TestAJobThatIsClaimedTooLateIsNotStarted",
	"attribute job.schedule.name of send": "runtime/spans: TestTheJobOfATickBeginsATrace",
	"attribute job.schedule.tick of send": "runtime/spans: TestTheJobOfATickBeginsATrace",
	"attribute job.state of queue wait":   "runtime/spans: TestAnAttemptWhoseHandlerNeverBeganIsAWaitWithTheLinkedID",
}

// quoted is a name or a value in a table.
var quoted = regexp.MustCompile("`([^`]+)`")

// documentation is what docs/reference/telemetry.md says about spans.
var documentation = sync.OnceValues(func() (*tables, error) {
	page, err := os.ReadFile("../../docs/reference/telemetry.md")
	if err != nil {
		return nil, err
	}
	rows := func(heading string) [][]string {
		_, table, _ := strings.Cut(string(page), "\n| "+heading+" |")
		table, _, _ = strings.Cut(table, "\n\n")
		var rows [][]string
		for _, line := range strings.Split(table, "\n")[2:] {
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			rows = append(rows, cells)
		}
		return rows
	}
	d := &tables{kinds: make(map[string]otlp.Span_SpanKind), told: make(map[string]bool)}
	for _, row := range rows("span") {
		of := strings.TrimSuffix(quoted.FindStringSubmatch(row[0])[1], " <type>")
		switch of {
		case "POST /jobs":
			of = "requests"
		case "postgresql <statement>":
			of = "statements"
		}
		d.kinds[of] = otlp.Span_SpanKind(otlp.Span_SpanKind_value["SPAN_KIND_"+strings.ToUpper(row[1])])
		d.told["span "+of] = false
	}
	for _, row := range rows("attribute") {
		key, all := strings.Trim(row[0], "`"), strings.ReplaceAll(strings.ReplaceAll(row[1], "`", ""),
			"attempts", "queue wait, process, lease wait, retry wait, lease lost")
		for of := range strings.SplitSeq(all, ", ") {
			d.told["attribute "+key+" of "+of] = false
		}
		if key == "job.link" {
			for _, link := range quoted.FindAllStringSubmatch(row[2], -1) {
				d.told["link "+link[1]] = false
			}
		}
	}
	for _, row := range rows("event") {
		d.told["event "+strings.Trim(row[0], "`")] = false
	}
	return d, nil
})

// look checks that the orchestrators' spans contain only what the tables list, and
// records what they contain.
func (d *tables) look(t *testing.T, spans []collector.Span) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	note := func(what string) {
		_, documented := d.told[what]
		require.True(t, documented, "docs/reference/telemetry.md does not have: %s", what)
		d.told[what] = true
	}
	attributes := func(of string, all map[string]any) {
		for key := range all {
			note("attribute " + key + " of " + of)
		}
	}
	for _, span := range spans {
		if span.Resource["service.name"] != "holdfast" {
			continue
		}
		of := d.classOf(span)
		require.NotEmpty(t, of, "docs/reference/telemetry.md does not have: span %q", span.Name)
		require.Equal(t, d.kinds[of], span.Kind, span.Name)
		note("span " + of)
		attributes(of, span.Attributes)
		for _, event := range span.Events {
			note("event " + event.Name)
			attributes("event "+event.Name, event.Attributes)
		}
		for _, link := range span.Links {
			attributes("links", link.Attributes)
			note("link " + link.Attributes["job.link"].(string))
		}
	}
}

// classOf returns the row of the first table that describes the span.
func (d *tables) classOf(span collector.Span) string {
	if span.Kind == otlp.Span_SPAN_KIND_SERVER {
		return "requests"
	}
	if strings.HasPrefix(span.Name, "postgresql ") {
		return "statements"
	}
	for of := range d.kinds {
		if jobType, ok := strings.CutPrefix(span.Name, of+" "); ok && jobType == span.Attributes["job.type"] {
			return of
		}
	}
	return ""
}

// everything checks that some story produced each entry of the tables.
func (d *tables) everything(t *testing.T) {
	t.Helper()
	var missing []string
	for what, told := range d.told {
		if _, rare := untold[what]; !told && !rare {
			missing = append(missing, what)
		}
	}
	for what := range untold {
		require.Contains(t, d.told, what, "docs/reference/telemetry.md does not have it")
	}
	slices.Sort(missing)
	require.Empty(t, missing, "what docs/reference/telemetry.md has and no story tells")
}
