package vcjob

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// Keys of status.controlledResources for what the status records about pods, as the pods may be gone.
const (
	// succeededKey and failedKey list the finished pods, as in "ps:0;worker:1,3-5".
	succeededKey = "muster.dev/succeeded"
	failedKey    = "muster.dev/failed"
	// aliveKey lists the pods that existed and had not finished. If one of them is gone, it was
	// evicted, even if its deletion was never observed.
	aliveKey = "muster.dev/alive"
	// evictedKey holds since when pods that await a policy's timeout have been gone or terminating, in
	// Unix seconds, as in "worker/1=1766491200,2=1766491201".
	evictedKey = "muster.dev/evicted"
	// restartsKey holds how often tasks and pods were restarted on their own, over the life of the job,
	// as in "worker=1;worker/3=2,4=1". Added to status.version, this is the number of an attempt.
	restartsKey = "muster.dev/restarts"
	// readyKey holds how many of the running pods are ready; it is there while any run.
	readyKey = volcano.ReadyKey
	// commandKey holds the UID of the last Command that was executed.
	commandKey = "muster.dev/command"
)

// podRecords is what the status records about pods.
type podRecords struct {
	ended map[string]replicas.Phase
	alive map[string]bool
	// evicted holds times by task/index.
	evicted map[string]time.Time
	// restarts holds counts by task and by task/index.
	restarts map[string]int32
}

func slot(task string, index int32) string { return task + "/" + strconv.Itoa(int(index)) }

func newPodRecords() podRecords {
	return podRecords{ended: map[string]replicas.Phase{}, alive: map[string]bool{}, evicted: map[string]time.Time{},
		restarts: map[string]int32{}}
}

func readPodRecords(status *volcano.JobStatus) podRecords {
	m := newPodRecords()
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
	readValues(status.ControlledResources[evictedKey],
		func(slot string, seconds int64) { m.evicted[slot] = time.Unix(seconds, 0) })
	readValues(status.ControlledResources[restartsKey], func(name string, n int64) {
		if n > 0 && n <= math.MaxInt32 {
			m.restarts[name] = int32(n)
		}
	})
	return m
}

// attempt returns how often the pod was restarted, on its own, with its task or with its job.
func (p podRecords) attempt(version int32, task string, index int32) int32 {
	return version + p.restarts[task] + p.restarts[slot(task, index)]
}

// of returns the records that package replicas needs.
func (p podRecords) of(version int32) func(string, int32) replicas.Record {
	return func(task string, index int32) replicas.Record {
		return replicas.Record{Restarts: p.attempt(version, task, index), Phase: p.ended[slot(task, index)]}
	}
}

// setRestarts records the restart counts.
func setRestarts(status *volcano.JobStatus, restarts map[string]int32) {
	values := make(map[string]int64, len(restarts))
	for name, n := range restarts {
		values[name] = int64(n)
	}
	setRecord(status, restartsKey, writeValues(values))
}

// recordEvictions records since when pods that await a policy's timeout have been gone. Entries of
// replicas that run again are dropped.
func recordEvictions(status *volcano.JobStatus, evicted map[string]time.Time, roster *replicas.Roster, mayRun bool) {
	values := map[string]int64{}
	for r := range pointers.To(roster.Replicas) {
		at := slot(r.Group, r.Index)
		if since, waits := evicted[at]; waits && mayRun && isInactive(r) {
			values[at] = since.Unix()
		}
	}
	setRecord(status, evictedKey, writeValues(values))
}

// notStarted reports whether the replica has no pod that has started to run.
func notStarted(r *replicas.Replica) bool {
	return r.Phase == replicas.Creating || r.Phase == replicas.Pending
}

// isInactive reports whether the replica has no pod that is running or finished.
func isInactive(r *replicas.Replica) bool {
	return notStarted(r) || r.UID() != "" && replicas.IsTerminating(r.Pod) && !r.Phase.Finished()
}

// recordMatching records under the key the pods for which holds is true.
func recordMatching(status *volcano.JobStatus, key string, roster *replicas.Roster,
	holds func(*replicas.Replica) bool) {
	var parts []string
	var task string
	var indices []int32
	flush := func() {
		if len(indices) > 0 {
			parts = append(parts, task+":"+writeRanges(indices))
		}
		indices = nil
	}
	for r := range pointers.To(roster.Replicas) {
		if r.Group != task {
			flush()
			task = r.Group
		}
		if holds(r) {
			indices = append(indices, r.Index)
		}
	}
	flush()
	setRecord(status, key, strings.Join(parts, ";"))
}

// setRecord sets a key; the value "" removes it.
func setRecord(status *volcano.JobStatus, key, value string) {
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

// readRanges parses "1,3-5". Invalid entries, from edits of the status, are skipped.
func readRanges(text string) (out []int32) {
	const most = 1 << 20
	for first, last := range jobs.Ranges(text) {
		if first < 0 || last >= most {
			continue
		}
		for i := first; i <= last; i++ {
			out = append(out, i)
		}
	}
	return out
}

// writeRanges formats ascending numbers as "1,3-5".
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

// readValues parses "worker=1;worker/3=2,4=1", a value for a task and two for pods. Invalid entries are skipped.
func readValues(text string, put func(key string, value int64)) {
	for part := range strings.SplitSeq(text, ";") {
		task, list, ofPods := strings.Cut(part, "/")
		if !ofPods {
			list = part
		}
		for entry := range strings.SplitSeq(list, ",") {
			key, value, ok := strings.Cut(entry, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			if !ok || err != nil {
				continue
			}
			if ofPods {
				key = task + "/" + key
			}
			put(key, n)
		}
	}
}

// writeValues formats values by task and by task/index as readValues parses them: each task is named once,
// as etcd takes no more than 1.5 MiB.
func writeValues(values map[string]int64) string {
	var out strings.Builder
	before := ""
	for _, key := range slices.Sorted(maps.Keys(values)) {
		task, index, ofPod := strings.Cut(key, "/")
		switch {
		case ofPod && task == before:
			out.WriteString("," + index)
		case out.Len() > 0:
			out.WriteString(";" + key)
		default:
			out.WriteString(key)
		}
		before = ""
		if ofPod {
			before = task
		}
		out.WriteString("=" + strconv.FormatInt(values[key], 10))
	}
	return out.String()
}
