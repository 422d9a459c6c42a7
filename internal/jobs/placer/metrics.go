package placer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	served "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/podspec"
)

// gatedIndex indexes the pods that wait for a place.
const gatedIndex = "muster.dev/gated"

// isGated is the index function for gatedIndex.
func isGated(object client.Object) []string {
	if pod := object.(*corev1.Pod); gated(pod) && !podspec.HasEnded(pod) {
		return []string{"true"}
	}
	return nil
}

var (
	// waitSeconds observes how long the gate held pods.
	waitSeconds = metrics.NewHistogram("muster_gated_pod_wait_seconds",
		"Time from the creation of a gated pod until it was given its place.",
		[]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}).WithLabelValues()
	// movedPods counts pods that were deleted so that they come back elsewhere.
	movedPods = metrics.NewCounter("muster_moved_pods_total",
		"Pods deleted because their job was given other places.").WithLabelValues()
	gatedPods = metrics.NewGaugeDesc("muster_gated_pods", "Pods that wait to be given a place by Muster.")
)

// registerMetrics registers the number of waiting pods. It is read from the cache, so it includes pods that another
// operator left waiting.
func registerMetrics(pods client.Reader) error {
	err := served.Registry.Register(gatedCount{pods})
	if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !again {
		return fmt.Errorf("registering the metric of gated pods: %w", err)
	}
	return nil
}

// gatedCount collects the number of waiting pods.
type gatedCount struct{ pods client.Reader }

// Describe implements prometheus.Collector.
func (gatedCount) Describe(to chan<- *prometheus.Desc) { to <- gatedPods }

// Collect implements prometheus.Collector.
func (g gatedCount) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(gatedPods, prometheus.GaugeValue, countGated(g.pods))
}

// countGated returns the number of waiting pods, NaN while the cache is not filled yet.
func countGated(pods client.Reader) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var list corev1.PodList
	if err := pods.List(ctx, &list, client.MatchingFields{gatedIndex: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return math.NaN()
	}
	return float64(len(list.Items))
}
