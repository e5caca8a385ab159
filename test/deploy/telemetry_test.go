package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(content)
}

// metric is a row of the tables in docs/reference/telemetry.md.
type metric struct {
	kind   string
	labels []string
}

// telemetry is what docs/reference/telemetry.md describes.
type telemetry struct {
	metrics map[string]metric
	// values are those of a label, by the label's name, or by its name and the
	// metric's.
	values map[string][]string
}

// scraped are the labels that Prometheus adds to everything it scrapes.
var scraped = []string{"job", "instance"}

var code = regexp.MustCompile("`([^`]+)`")

func documented(t *testing.T) telemetry {
	t.Helper()
	// Prometheus makes this one for each target.
	found := telemetry{metrics: map[string]metric{"up": {kind: "gauge"}}, values: map[string][]string{}}
	for line := range strings.Lines(read(t, "docs/reference/telemetry.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		var names [][]string
		for _, cell := range cells {
			var inCell []string
			for _, name := range code.FindAllStringSubmatch(cell, -1) {
				inCell = append(inCell, name[1])
			}
			names = append(names, inCell)
		}
		switch {
		case len(cells) == 5 && len(names[0]) == 1 && strings.HasPrefix(names[0][0], "holdfast_"):
			found.metrics[names[0][0]] = metric{strings.TrimSpace(cells[1]), names[3]}
		case len(cells) == 2 && len(names[0]) > 0 && len(names[1]) > 1:
			found.values[strings.Join(names[0], " ")] = names[1]
		}
	}
	require.Greater(t, len(found.metrics), 20)
	require.Contains(t, found.values, "outcome")
	require.Contains(t, found.values, "state holdfast_jobs")
	return found
}

// series returns the metric that a series belongs to.
func (d telemetry) series(name string) (string, metric, bool) {
	if found, ok := d.metrics[name]; ok {
		return name, found, found.kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base := strings.TrimSuffix(name, suffix)
		if found, ok := d.metrics[base]; ok && base != name && found.kind == "histogram" {
			if suffix == "_bucket" {
				found.labels = append(slices.Clone(found.labels), "le")
			}
			return base, found, true
		}
	}
	return name, metric{}, false
}

// check requires that a query parses and uses only documented metrics, labels and values.
// It returns the labels of its series.
func (d telemetry) check(t *testing.T, query string) []string {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	known, asked := slices.Clone(scraped), 0
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		asked++
		base, found, ok := d.series(selector.Name)
		require.True(t, ok, "%s is not in docs/reference/telemetry.md: %s", selector.Name, query)
		known = append(known, found.labels...)
		for _, matcher := range selector.LabelMatchers {
			d.checkMatcher(t, base, found, matcher, query)
		}
		return nil
	})
	require.NotZero(t, asked, query)
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			require.Subset(t, known, aggregate.Grouping, query)
		}
		return nil
	})
	return known
}

func (d telemetry) checkMatcher(t *testing.T, base string, found metric, matcher *labels.Matcher, query string) {
	t.Helper()
	if matcher.Name == model.MetricNameLabel || slices.Contains(scraped, matcher.Name) {
		return
	}
	require.Contains(t, found.labels, matcher.Name, query)
	values, listed := d.values[matcher.Name+" "+base]
	if !listed {
		values, listed = d.values[matcher.Name]
	}
	if !listed {
		return
	}
	for value := range strings.SplitSeq(matcher.Value, "|") {
		require.Contains(t, values, value, "%s of %s: %s", matcher.Name, base, query)
	}
}
