package translate

import (
	"encoding/hex"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/workload"
)

// timeOf returns what the Workload says of how long it runs. podSets are its pod sets with their requests. What is
// absurd or cannot be read counts as not given.
//
// The times that it ran before count only toward maximumExecutionTimeSeconds: the deadlines of a batch Job and of pods
// begin anew with each start.
func timeOf(w *kueue.Workload, podSets []engine.PodSet) durations.Known {
	out := durations.Known{
		Limit:    workload.Seconds(int64(ptr.Deref(w.Spec.MaximumExecutionTimeSeconds, 0))),
		PerStart: workload.OwnLimit(w),
		Expected: workload.ParseTime(w.Annotations[muster.ExpectedDurationAnnotation]),
		Kind:     kindOf(w, podSets),
		Wider:    w.Namespace,
	}
	if w.Spec.MaximumExecutionTimeSeconds != nil {
		out.Ran = workload.Seconds(int64(ptr.Deref(w.Status.AccumulatedPastExexcutionTimeSeconds, 0)))
	}
	if at, err := time.Parse(time.RFC3339, w.Annotations[muster.ExpectedEndAnnotation]); err == nil {
		out.Ends = at.UTC()
	}
	return out
}

// durationsOf returns what the annotations of a ClusterQueue or a LocalQueue say of the times of its workloads.
func durationsOf(queue client.Object) durations.Bounds {
	return durations.Bounds{
		Max:     workload.QueueTime(queue, muster.MaxDurationAnnotation),
		Default: workload.QueueTime(queue, muster.DefaultDurationAnnotation),
	}
}

// backfills reports whether a queue with the strategy BestEffortFIFO plans the start of its first workload that does
// not fit: as its annotation says, or else byDefault.
func backfills(queue *kueue.ClusterQueue, byDefault bool) bool {
	switch queue.Annotations[muster.BackfillAnnotation] {
	case "true":
		return true
	case "false":
		return false
	}
	return byDefault
}

// longestKind is the length in bytes above which a kind is replaced by a hash.
const longestKind = 160

// kindOf names the workloads that are like this one: of the same namespace, the same kind of job, the same name but for
// what is generated or counted, and the same pods. For example, the Jobs train-7 and train-8 in ns that request one GPU
// each are of the kind ns/Job/train/HASH.
func kindOf(w *kueue.Workload, podSets []engine.PodSet) string {
	owner, name := "", w.Name
	if o := metav1.GetControllerOfNoCopy(w); o != nil {
		owner, name = o.Kind, o.Name
	}
	kind := w.Namespace + "/" + owner + "/" + withoutCounters(name) + "/" + shapeOf(podSets)
	if len(kind) <= longestKind {
		return kind
	}
	return w.Namespace + "/" + hashOf(kind)
}

// shapeOf returns a hash of how many pods the pod sets have, and what each pod requests.
func shapeOf(podSets []engine.PodSet) string {
	var text []byte
	for i := range podSets {
		ps := &podSets[i]
		text = append(append(text, ps.Name...), '*')
		text = strconv.AppendInt(text, int64(ps.Count), 10)
		for _, name := range slices.Sorted(maps.Keys(ps.PerPod)) {
			text = append(append(append(text, ' '), name...), '=')
			text = strconv.AppendInt(text, ps.PerPod[name], 10)
		}
		text = append(text, '\n')
	}
	return hashOf(string(text))
}

// hashOf returns a short hash of the text. Two texts with the same hash would only share what is learned.
func hashOf(text string) string {
	hash := fnv.New64a()
	hash.Write([]byte(text)) // never fails
	return hex.EncodeToString(hash.Sum(nil))
}

// uuid matches UUIDs.
var uuid = regexp.MustCompile(`[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}`)

// withoutCounters returns the name of a job without what tells it from others of its kind: numbers, UUIDs, hexadecimal
// hashes, and a last part that was generated. For example, it is train for train-7, train-x2k9f and train-20260301, and
// train-lr for train-lr3-5f3a9c21.
func withoutCounters(name string) string {
	if len(name) >= 36 {
		name = uuid.ReplaceAllString(name, "")
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '_' })
	var kept []string
	for i, part := range parts {
		if isHash(part) || i > 0 && i == len(parts)-1 && isGeneratedPart(part) {
			continue
		}
		if part = withoutDigits(part); part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "-")
}

// isGeneratedPart reports whether the part looks like what the API server appends to metadata.generateName: five
// letters and digits that spell no word.
func isGeneratedPart(part string) bool {
	const suffix = "bcdfghjklmnpqrstvwxz2456789"
	return len(part) == 5 && strings.Trim(part, suffix) == ""
}

// isHash reports whether the part looks like a hash: at least six hexadecimal digits, both letters and numbers.
func isHash(part string) bool {
	return len(part) >= 6 && strings.Trim(part, "0123456789abcdef") == "" && strings.ContainsAny(part, "0123456789") &&
		strings.ContainsAny(part, "abcdef")
}

// withoutDigits returns the part without its digits.
func withoutDigits(part string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, part)
}
