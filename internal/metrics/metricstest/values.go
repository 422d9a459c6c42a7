// Package metricstest reads metrics in tests.
package metricstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	served "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values returns all values of the operator's registry, in the format of Of.
func Values(t testing.TB) map[string]float64 {
	t.Helper()
	return read(t, served.Registry)
}

// Of returns the values of one collector by name{label=value,...}, with the labels sorted by name. Of a histogram it
// has the count and the sum, as name_count and name_sum.
func Of(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	return read(t, registry)
}

func read(t testing.TB, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
			}
			suffix := ""
			if len(labels) > 0 {
				suffix = "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.GetHistogram() != nil:
				out[family.GetName()+"_count"+suffix] = float64(m.GetHistogram().GetSampleCount())
				out[family.GetName()+"_sum"+suffix] = m.GetHistogram().GetSampleSum()
			case m.GetCounter() != nil:
				out[family.GetName()+suffix] = m.GetCounter().GetValue()
			default:
				out[family.GetName()+suffix] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}
