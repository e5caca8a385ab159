package deploy

import (
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// history is what Prometheus has scraped, one sample a minute.
type history struct {
	series []storage.Series
	// until is the time of the last sample.
	until time.Time
}

// scrapedHistory reads series in the notation of Prometheus' own tests, such as
// `up{job="holdfast"} 1x3 0 _`: four times 1, once 0, and no sample.
func scrapedHistory(t *testing.T, lines ...string) history {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := history{until: begin}
	for _, line := range lines {
		name, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(line)
		require.NoError(t, err, line)
		var samples []chunks.Sample
		for minute, value := range values {
			at := begin.Add(time.Duration(minute) * time.Minute)
			if at.After(h.until) {
				h.until = at
			}
			if !value.Omitted {
				samples = append(samples, sample{at.UnixMilli(), value.Value})
			}
		}
		h.series = append(h.series, storage.NewListSeries(name, samples))
	}
	return h
}

// firing returns the series for which an alert fires at the end: its expression has been
// true for as long as the alert requires, evaluated once a minute.
func (h history) firing(t *testing.T, expression string, held time.Duration) promql.Vector {
	t.Helper()
	lasting := h.evaluate(t, expression, h.until)
	for past := time.Minute; past <= held; past += time.Minute {
		before := map[string]bool{}
		for _, s := range h.evaluate(t, expression, h.until.Add(-past)) {
			before[s.Metric.String()] = true
		}
		var still promql.Vector
		for _, s := range lasting {
			if before[s.Metric.String()] {
				still = append(still, s)
			}
		}
		lasting = still
	}
	return lasting
}

func (h history) evaluate(t *testing.T, expression string, at time.Time) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 100_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	defer func() { require.NoError(t, engine.Close()) }()
	query, err := engine.NewInstantQuery(t.Context(), h, nil, expression, at)
	require.NoError(t, err, expression)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, expression)
	vector, err := result.Vector()
	require.NoError(t, err, expression)
	// Close reuses its memory.
	return append(promql.Vector(nil), vector...)
}

var _ storage.Queryable = history{}

// Querier implements storage.Queryable.
func (h history) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			var found []storage.Series
			for _, series := range h.series {
				if matches(series.Labels(), matchers) {
					found = append(found, series)
				}
			}
			return &seriesSet{series: found}
		},
	}, nil
}

func matches(name labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(name.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

// seriesSet iterates over series.
type seriesSet struct {
	series []storage.Series
	// at counts the series so far, including the current one.
	at int
}

func (s *seriesSet) Next() bool {
	s.at++
	return s.at <= len(s.series)
}

func (s *seriesSet) At() storage.Series              { return s.series[s.at-1] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// sample is a number at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (s sample) F() float64                  { return s.value }
func (sample) ST() int64                     { return 0 }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
