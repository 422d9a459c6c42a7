// Package alerts evaluates the alerting rules of the chart with Prometheus' own engine.
package alerts

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// TestAlertsFire evaluates each alert two hours after series began, one sample a minute.
func TestAlertsFire(t *testing.T) {
	const audits = `muster_quota_audits_total{pod="a",result="equal"} 0+1x120` + "\n"
	for what, test := range map[string]struct {
		series string
		want   []string // alerts, each with the values of its labels
	}{
		"all is well": {audits +
			`muster_quota_audits_total{pod="before",result="equal"} 0+1x30` + `
			muster_gated_pods{pod="a"} 3+0x120
			muster_gated_pod_wait_seconds_count{pod="a"} 0+2x120
			muster_engine_pass_seconds_bucket{pod="a",le="0.05"} 0+100x120
			muster_engine_pass_seconds_bucket{pod="a",le="+Inf"} 0+100x120
			muster_unreadable_objects_total{pod="a",kind="Job"} 1+0x120
			kueue_cluster_queue_status{cluster_queue="busy",status="pending"} 0+0x120
			kueue_pending_workloads{cluster_queue="busy",status="active"} 9+0x120
			kueue_reserving_active_workloads{cluster_queue="busy"} 2+0x120
			kueue_pending_workloads{cluster_queue="idle",status="active"} 0+0x120
			kueue_reserving_active_workloads{cluster_queue="idle"} 0+0x120`, nil},
		"nothing is read": {`up{job="other"} 1+0x120`, []string{"MusterDown"}},
		"no operator leads": {`muster_quota_audits_total{pod="a",result="equal"} 0+1x100 100+0x20`,
			[]string{"MusterDown"}},
		"an audit found a fault": {audits + `muster_quota_audit_difference{cluster_queue="q",flavor="f",resource="cpu"} 0x60 -2x60`,
			[]string{"MusterQuotaDiffers q f cpu"}},
		"an object is unreadable": {audits + `muster_unreadable_objects_total{kind="JobSet"} 0+0x115 1+0x4`,
			[]string{"MusterUnreadableObjects JobSet"}},
		"pods stay gated": {audits + `muster_gated_pods 0x100 5x20
			muster_gated_pod_wait_seconds_count 7x120`, []string{"MusterPodsStayGated"}},
		"passes are long": {audits + `muster_engine_pass_seconds_bucket{le="0.2"} 0+97x120
			muster_engine_pass_seconds_bucket{le="0.8"} 0+100x120
			muster_engine_pass_seconds_bucket{le="+Inf"} 0+100x120`, []string{"MusterDecidesSlowly"}},
		"the engine rests between long rows of passes": {audits + `muster_engine_stalled_seconds 0+4x2 0x117`, nil},
		"a job was overlooked": {audits + `muster_engine_missed_wakes_total{pod="a"} 0x115 1+0x4`,
			[]string{"MusterJobOverlooked"}},
		"the engine decides nothing": {audits + `muster_engine_stalled_seconds{pod="a"} 0x119 14`,
			[]string{"MusterEngineBusyInVain"}},
		"a queue is stopped": {audits + `kueue_cluster_queue_status{cluster_queue="q",status="pending"} 0x80 1x40
			kueue_pending_workloads{cluster_queue="q",status="active"} 2x120
			kueue_reserving_active_workloads{cluster_queue="q"} 0x120`, []string{"MusterClusterQueueInactive q"}},
		"jobs wait in an empty queue": {audits + `kueue_pending_workloads{cluster_queue="q",status="active"} 2x120
			kueue_reserving_active_workloads{cluster_queue="q"} 1x80 0x40`, []string{"MusterClusterQueueStuck q"}},
		"jobs began to wait in an empty queue": {audits + `kueue_pending_workloads{cluster_queue="q",status="active"} 0x100 2x20
			kueue_reserving_active_workloads{cluster_queue="q"} 0x120`, nil},
	} {
		t.Run(what, func(t *testing.T) {
			series := promqltest.LoadedStorage(t, "load 1m\n"+test.series)
			var got []string
			for _, rule := range alerts(t) {
				got = append(got, firing(t, series, rule, time.Unix(0, 0).Add(2*time.Hour))...)
			}
			if strings.Join(got, ", ") != strings.Join(test.want, ", ") {
				t.Errorf("these alerts fire: %q, want %q", got, test.want)
			}
		})
	}
}

// alerts returns the chart's alerting rules, which Prometheus must accept.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	file, err := os.ReadFile("../../charts/muster/alerts/muster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

// firing returns the name of the rule's alert with the values of its labels for each series for which it fires: its
// expression has been true for as long as the rule says.
func firing(t *testing.T, series storage.Queryable, rule rulefmt.Rule, at time.Time) (out []string) {
	t.Helper()
	const step = time.Minute
	since := time.Duration(rule.For)
	query, err := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery).
		NewRangeQuery(t.Context(), series, nil, rule.Expr, at.Add(-since), at, step)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	found, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	for _, one := range found {
		if len(one.Floats) == int(since/step)+1 {
			alert := rule.Alert
			one.Metric.Range(func(l labels.Label) { alert += " " + l.Value })
			out = append(out, alert)
		}
	}
	return out
}
