package vcjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
)

// Keys of status.controlledResources under which the status remembers what pods cannot
// tell, because they may be gone.
const (
	// succeededKey and failedKey list the pods that have ended, as in "ps:0;worker:1,3-5".
	succeededKey = "muster.dev/succeeded"
	failedKey    = "muster.dev/failed"
	// aliveKey lists those that were there and had not ended: one that is gone since was
	// evicted, though nobody has seen it go.
	aliveKey = "muster.dev/alive"
	// evictedKey has since when pods are gone, or going, about which a policy waits before it does anything, in seconds since
	// 1970, as in "worker/1=1766491200".
	evictedKey = "muster.dev/evicted"
	// restartsKey has how often tasks and pods were started anew by themselves, ever, as in
	// "worker=1;worker/3=2". With status.version it makes the number of an attempt.
	restartsKey = "muster.dev/restarts"
	// commandKey is the UID of the Command that was obeyed last.
	commandKey = "muster.dev/command"
)

// memory is what the status remembers of pods.
type memory struct {
	ended map[string]replicas.Phase
	alive map[string]bool
	// evicted is since when, by task/index.
	evicted map[string]time.Time
	// restarts by task, and by task/index.
	restarts map[string]int32
}

func slot(task string, index int32) string { return task + "/" + strconv.Itoa(int(index)) }

func newMemory() memory {
	return memory{ended: map[string]replicas.Phase{}, alive: map[string]bool{}, evicted: map[string]time.Time{}, restarts: map[string]int32{}}
}

func readMemory(status *volcano.JobStatus) memory {
	m := newMemory()
	read := func(key string, put func(slot string)) {
		for part := range strings.SplitSeq(status.ControlledResources[key], ";") {
			task, list, ok := strings.Cut(part, ":")
			if !ok {
				continue
			}
			for _, index := range readRanges(list) {
				put(slot(task, index))
			}
		}
	}
	read(failedKey, func(slot string) { m.ended[slot] = replicas.Failed })
	read(succeededKey, func(slot string) { m.ended[slot] = replicas.Succeeded })
	read(aliveKey, func(slot string) { m.alive[slot] = true })
	for part := range strings.SplitSeq(status.ControlledResources[evictedKey], ";") {
		slot, text, ok := strings.Cut(part, "=")
		if seconds, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			m.evicted[slot] = time.Unix(seconds, 0)
		}
	}
	for part := range strings.SplitSeq(status.ControlledResources[restartsKey], ";") {
		name, text, ok := strings.Cut(part, "=")
		if n, err := strconv.ParseInt(text, 10, 32); ok && err == nil && n > 0 {
			m.restarts[name] = int32(n)
		}
	}
	return m
}

// attempt is how often the pod was started anew, with its task, its job or alone.
func (m memory) attempt(version int32, task string, index int32) int32 {
	return version + m.restarts[task] + m.restarts[slot(task, index)]
}

// of is what package replicas wants to know.
func (m memory) of(version int32) func(string, int32) replicas.Record {
	return func(task string, index int32) replicas.Record {
		return replicas.Record{Restarts: m.attempt(version, task, index), Phase: m.ended[slot(task, index)]}
	}
}

// setRestarts writes how often what was started anew.
func setRestarts(status *volcano.JobStatus, restarts map[string]int32) {
	var parts []string
	for name, n := range restarts {
		parts = append(parts, fmt.Sprintf("%s=%d", name, n))
	}
	slices.Sort(parts)
	remember(status, restartsKey, strings.Join(parts, ";"))
}

// rememberEvictions writes since when pods are gone about which a policy waits. That of one whose replica runs again is forgotten.
func rememberEvictions(status *volcano.JobStatus, evicted map[string]time.Time, roster *replicas.Roster, mayRun bool) {
	var parts []string
	for i := range roster.Replicas {
		r := &roster.Replicas[i]
		at := slot(r.Group, r.Index)
		if since, waits := evicted[at]; waits && mayRun && isAway(r) {
			parts = append(parts, fmt.Sprintf("%s=%d", at, since.Unix()))
		}
	}
	remember(status, evictedKey, strings.Join(parts, ";"))
}

// waitsToRun reports whether the replica has no pod yet that has begun to run.
func waitsToRun(r *replicas.Replica) bool {
	return r.Phase == replicas.Creating || r.Phase == replicas.Pending
}

// isAway reports whether the replica has no pod that runs, nor one that has ended.
func isAway(r *replicas.Replica) bool {
	return waitsToRun(r) || r.UID() != "" && replicas.IsTerminating(r.Pod) && !r.Phase.Finished()
}

// rememberPods writes which pods have ended, and which of the present attempt are there,
// unless those may not be.
func rememberPods(status *volcano.JobStatus, roster *replicas.Roster, mayRun bool) {
	rememberThose(status, succeededKey, roster, func(r *replicas.Replica) bool { return r.Phase == replicas.Succeeded })
	rememberThose(status, failedKey, roster, func(r *replicas.Replica) bool { return r.Phase == replicas.Failed })
	rememberThose(status, aliveKey, roster, func(r *replicas.Replica) bool { return mayRun && r.UID() != "" && !r.Phase.Finished() })
}

// rememberThose writes under the key for which pods it holds.
func rememberThose(status *volcano.JobStatus, key string, roster *replicas.Roster, holds func(*replicas.Replica) bool) {
	var parts []string
	var task string
	var indices []int32
	flush := func() {
		if len(indices) > 0 {
			parts = append(parts, task+":"+writeRanges(indices))
		}
		indices = nil
	}
	for i := range roster.Replicas {
		r := &roster.Replicas[i]
		if r.Group != task {
			flush()
			task = r.Group
		}
		if holds(r) {
			indices = append(indices, r.Index)
		}
	}
	flush()
	remember(status, key, strings.Join(parts, ";"))
}

// remember sets a key, or removes it for "".
func remember(status *volcano.JobStatus, key, value string) {
	if value == "" {
		delete(status.ControlledResources, key)
		if len(status.ControlledResources) == 0 {
			status.ControlledResources = nil
		}
		return
	}
	if status.ControlledResources == nil {
		status.ControlledResources = map[string]string{}
	}
	status.ControlledResources[key] = value
}

// readRanges reads "1,3-5". What is no such list is none: somebody has tampered with it.
func readRanges(text string) (out []int32) {
	const most = 1 << 20
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err != nil || err2 != nil || first < 0 || last >= most {
			continue
		}
		for i := first; i <= last; i++ {
			out = append(out, int32(i))
		}
	}
	return out
}

// writeRanges writes numbers in ascending order as "1,3-5".
func writeRanges(indices []int32) string {
	var out strings.Builder
	for i := 0; i < len(indices); {
		j := i
		for j+1 < len(indices) && indices[j+1] == indices[j]+1 {
			j++
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Itoa(int(indices[i])))
		if j > i {
			out.WriteString("-" + strconv.Itoa(int(indices[j])))
		}
		i = j + 1
	}
	return out.String()
}
