package audit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/indexes"
	"github.com/musterhq/muster/internal/admission/report"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/workload"
)

// Interval is how often the engine's accounts are compared with the API's objects.
const Interval = time.Minute

// auditExamples is how many Workloads the condition names at most.
const auditExamples = 3

var (
	// Total counts audits by result.
	Total = metrics.NewCounter("muster_quota_audits_total",
		"Comparisons of what the engine counts with what the API's Workloads hold, by result: `equal`, `different` or `failed`.", "result")
	// Seconds measures audits.
	Seconds = metrics.NewHistogram("muster_quota_audit_seconds",
		"Time of one such comparison, during which nothing is decided.",
		[]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25}).WithLabelValues()
)

// Auditor compares the engine's accounts with the API's Workloads from time to time. Caches lag, and a write in
// flight is known to one side only, so a difference counts only if two successive readings find it for the same
// Version of a Workload.
type Auditor struct {
	Cache client.Reader
	// Every is the interval, 0 to disable audits.
	Every time.Duration
	last  map[difference]int64
	// found are the differences that counted in the last audit.
	found map[difference]int64
	next  time.Time
}

// Difference identifies a difference between the engine and the API: the amount of a ClusterQueue that a Workload,
// at a version, holds. Without a Workload it is a difference within the engine: the queue's sum is not that of its
// workloads.
type difference struct {
	report.AmountOf
	Workload engine.Key
	Version  string
}

// Due returns the time of the next audit.
func (a *Auditor) Due() time.Time { return a.next }

// Audit runs an audit if one is due, and reports whether it did. It sets found to how much more the engine counts
// than the API's objects say.
func (a *Auditor) Audit(ctx context.Context, e *engine.Engine, queues iter.Seq[string], now time.Time) (done bool) {
	switch {
	case a.Every == 0:
		return false
	case a.next.IsZero():
		a.next = now.Add(a.Every)
		return false
	case now.Before(a.next):
		return false
	}
	a.next = now.Add(a.Every)
	var list kueue.WorkloadList
	if err := a.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		Total.WithLabelValues("failed").Inc()
		ctrl.LoggerFrom(ctx).Error(err, "listing the Workloads for the quota audit; retrying in a minute")
		return false
	}
	read := differencesOf(e, queues, list.Items)
	a.found = inBoth(a.last, read)
	a.last = read
	return true
}

// differencesOf returns all current differences between the engine and the Workloads.
func differencesOf(e *engine.Engine, queues iter.Seq[string], workloads []kueue.Workload) map[difference]int64 {
	out := map[difference]int64{}
	differ := func(d difference, by int64) {
		if by != 0 {
			out[d] += by
		}
	}
	both := compareWorkloads(e, workloads, differ)
	all := compareQueues(e, queues, differ)
	if all > both { // only then can there be holdings without a Workload
		for h := range unconfirmed(e, workloads) {
			for _, a := range h.Held {
				differ(difference{AmountOf: report.AmountOf{Queue: h.ClusterQueue, FlavorResource: e.AmountName(a.Index)},
					Workload: h.Key}, a.Value)
			}
		}
	}
	maps.DeleteFunc(out, func(_ difference, by int64) bool { return by == 0 })
	return out
}

// compareWorkloads calls differ for each amount on which a Workload and the engine differ, and returns how many
// workloads hold quota according to both.
func compareWorkloads(e *engine.Engine, workloads []kueue.Workload, differ func(difference, int64)) (both int) {
	var holds []held
	for i := range workloads {
		w := &workloads[i]
		if !indexes.HoldsQuota(w) {
			continue
		}
		h, ok := e.Holding(translate.KeyOf(w))
		if ok {
			both++
		}
		if ok && h.Assumed {
			continue
		}
		holds = heldBy(w, holds[:0])
		if ok && agree(e, &h, w, holds) {
			continue
		}
		at := func(of report.AmountOf) difference { return difference{of, translate.KeyOf(w), w.ResourceVersion} }
		for _, a := range h.Held {
			differ(at(report.AmountOf{Queue: h.ClusterQueue, FlavorResource: e.AmountName(a.Index)}), a.Value)
		}
		for _, a := range holds {
			differ(at(report.AmountOf{Queue: string(w.Status.Admission.ClusterQueue), FlavorResource: a.FlavorResource}),
				-a.amount)
		}
	}
	return both
}

// compareQueues calls differ for each amount of a queue that is not the sum of the engine's holdings, and returns
// the number of holdings.
func compareQueues(e *engine.Engine, queues iter.Seq[string], differ func(difference, int64)) (all int) {
	sums := map[string]map[quota.FlavorResource]int64{}
	for h := range e.Holdings {
		all++
		own := sums[h.ClusterQueue]
		if own == nil {
			own = map[quota.FlavorResource]int64{}
			sums[h.ClusterQueue] = own
		}
		for _, a := range h.Held {
			of := e.AmountName(a.Index)
			own[of] = quota.Add(own[of], a.Value)
		}
	}
	for name := range queues {
		usage, ok := e.QueueUsage(name)
		if !ok {
			continue
		}
		own := sums[name]
		for of, sum := range usage.Reserved {
			differ(difference{AmountOf: report.AmountOf{Queue: name, FlavorResource: of}}, sum-own[of])
			delete(own, of)
		}
		for of, sum := range own {
			differ(difference{AmountOf: report.AmountOf{Queue: name, FlavorResource: of}}, -sum)
		}
	}
	return all
}

// unconfirmed returns the engine's holdings that no Workload confirms, without the holdings that are still being
// written.
func unconfirmed(e *engine.Engine, workloads []kueue.Workload) iter.Seq[engine.Holding] {
	stored := map[engine.Key]bool{}
	for i := range workloads {
		if indexes.HoldsQuota(&workloads[i]) {
			stored[translate.KeyOf(&workloads[i])] = true
		}
	}
	return func(yield func(engine.Holding) bool) {
		for h := range e.Holdings {
			if !h.Assumed && !stored[h.Key] && !yield(h) {
				return
			}
		}
	}
}

// held is the amount of a resource that a Workload holds.
type held struct {
	quota.FlavorResource
	amount int64
}

// heldBy sums up what the Workload holds by its status: its admission, less what ended pods gave back, plus what its
// terminating surplus pods still use.
func heldBy(w *kueue.Workload, into []held) []held {
	for i := range w.Status.Admission.PodSetAssignments {
		a := &w.Status.Admission.PodSetAssignments[i]
		left, given := workload.PodsHoldingQuota(w, a)
		surplus := translate.SurplusOf(w, a)
		for name, flavor := range a.Flavors {
			of := quota.FlavorResource{Flavor: string(flavor), Resource: string(name)}
			amount := quota.Add(translate.Share(quota.FromQuantity(name, a.ResourceUsage[name]), left, given),
				surplus[string(name)])
			if at := slices.IndexFunc(into, func(h held) bool { return h.FlavorResource == of }); at >= 0 {
				into[at].amount = quota.Add(into[at].amount, amount)
			} else {
				into = append(into, held{of, amount})
			}
		}
	}
	return into
}

// agree reports whether the engine charges the same amounts to the same ClusterQueue as the Workload's status.
func agree(e *engine.Engine, h *engine.Holding, w *kueue.Workload, holds []held) bool {
	if h.ClusterQueue != string(w.Status.Admission.ClusterQueue) {
		return false
	}
	left := len(h.Held)
	for _, is := range holds {
		if is.amount == 0 {
			continue
		}
		at := slices.IndexFunc(h.Held, func(a quota.Amount) bool { return e.AmountName(a.Index) == is.FlavorResource })
		if at < 0 || h.Held[at].Value != is.amount {
			return false
		}
		left--
	}
	return left == 0
}

// inBoth returns the differences that both readings found, with the same amount.
func inBoth(before, now map[difference]int64) map[difference]int64 {
	out := map[difference]int64{}
	for d, by := range now {
		if before[d] == by { // no difference is 0
			out[d] = by
		}
	}
	return out
}

// ByQueue returns the sums of the differences that the last audit found, by ClusterQueue and resource.
func (a *Auditor) ByQueue() map[report.AmountOf]int64 { return byQueue(a.found) }

func byQueue(found map[difference]int64) map[report.AmountOf]int64 {
	out := map[report.AmountOf]int64{}
	for d, by := range found {
		out[d.AmountOf] = quota.Add(out[d.AmountOf], by)
	}
	return out
}

// Messages returns, for each ClusterQueue with differences, the message about them for its condition and the log.
func (a *Auditor) Messages() map[string]string { return differenceMessages(a.found) }

func differenceMessages(found map[difference]int64) map[string]string {
	amounts, examples := map[string][]string{}, map[string][]string{}
	sums := byQueue(found)
	for _, of := range slices.SortedFunc(maps.Keys(sums), compareAmounts) {
		by := quota.ToQuantity(corev1.ResourceName(of.Resource), sums[of])
		amounts[of.Queue] = append(amounts[of.Queue],
			fmt.Sprintf("%s of flavor %s by %s", of.Resource, of.Flavor, by.String()))
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b difference) int {
		return cmp.Or(compareAmounts(a.AmountOf, b.AmountOf), cmp.Compare(a.Workload.String(), b.Workload.String()))
	})
	for _, d := range keys {
		name := d.Workload.String()
		if d.Workload == (engine.Key{}) {
			name = "the queue's own sum"
		}
		if named := examples[d.Queue]; len(named) < auditExamples && !slices.Contains(named, name) {
			examples[d.Queue] = append(named, name)
		}
	}
	out := map[string]string{}
	for queue, list := range amounts {
		out[queue] = fmt.Sprintf("The engine counts more quota as held than Workloads hold (less if negative): %s; for example %s. "+
			"Restart the operator, which then counts from scratch, and report this with its log", strings.Join(list, ", "),
			strings.Join(examples[queue], ", "))
	}
	return out
}

func compareAmounts(a, b report.AmountOf) int {
	return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
}
