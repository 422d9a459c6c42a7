//go:build bench

package elastic

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, Operator: true, Config: harness.ResizeAtOnce})
}

const (
	// The job is resized from larger to smaller and back, repeats times.
	smaller, larger, repeats = 2, 4, 8
	// overheadMost is the most that a resize may take beyond the floor.
	overheadMost = time.Second
	// trainScript loads for 0.2 s and then reports its round; when it is asked to stop it saves for 0.2 s.
	trainScript = `trap 'sleep 0.2; exit 0' TERM
sleep 0.2
echo "$LATTICE_ROUND $WORLD_SIZE $EPOCHREALTIME" > "$FOLDER/rounds"
sleep 1000 & wait $!`
)

// TestResize measures the time from the decision on another size until the last member of the new round has loaded,
// with pods that run as processes of this machine. The floor is the time to stop and start as many of the same
// processes without Muster.
func TestResize(t *testing.T) {
	w := newResizeWorld(t)
	w.Queue("default", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")})
	w.Create(w.job("elastic", larger, true, trainScript))
	w.untilRound(larger)
	var shrunk, grown, fromCreation []time.Duration
	for range repeats {
		began := time.Now()
		rigid := w.job("rigid", smaller, false, `trap 'exit 0' TERM; sleep 1000 & wait $!`)
		w.Create(rigid)
		decided := w.untilSize(smaller)
		at := w.untilRound(smaller)
		shrunk, fromCreation = append(shrunk, at.Sub(decided)), append(fromCreation, at.Sub(began))
		w.Delete(rigid)
		decided = w.untilSize(larger)
		grown = append(grown, w.untilRound(larger).Sub(decided))
	}
	floor := w.floor(larger)
	reach := func(what string, took []time.Duration) {
		longest := slices.Max(took)
		figure.Note(fmt.Sprintf("%s, median of %d", what, len(took)), figure.Seconds(medianOf(took)))
		figure.Reach(t, what+", longest", figure.Seconds(longest), figure.Seconds(floor+overheadMost),
			longest <= floor+overheadMost)
	}
	reach("4 -> 2: decision to the last of the new round", shrunk)
	reach("2 -> 4, of which two are new pods", grown)
	figure.Note("  4 -> 2 from the creation of the other job, median", figure.Seconds(medianOf(fromCreation)))
	figure.Note("  save and load of 4 by hand: the floor", figure.Seconds(floor))
}

func medianOf(of []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

// resizeWorld is a namespace with the job that is resized.
type resizeWorld struct {
	*harness.World
	folder string
	// lines receives the lines that the programs write, sizes the decided sizes of the job.
	lines <-chan string
	sizes <-chan decidedSize
	// round is the last round that was complete.
	round int
}

// decidedSize is a size granted to the job, and when that was seen.
type decidedSize struct {
	to int32
	at time.Time
}

func newResizeWorld(t *testing.T) *resizeWorld {
	w := &resizeWorld{World: harness.New(t), folder: t.TempDir()}
	w.lines = w.readLines()
	w.sizes = w.decisions()
	return w
}

// readLines returns the lines that programs write to the named pipe "rounds" in the folder.
func (r *resizeWorld) readLines() <-chan string {
	r.Helper()
	path := filepath.Join(r.folder, "rounds")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		r.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // also for writing, so that reads never return EOF
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { pipe.Close() })
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(pipe); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// decisions returns the sizes that the job's Workload is granted.
func (r *resizeWorld) decisions() <-chan decidedSize {
	r.Helper()
	events, err := r.Client.Watch(r.Context(), &kueue.WorkloadList{}, client.InNamespace(r.Namespace))
	if err != nil {
		r.Fatal(err)
	}
	sizes := make(chan decidedSize, 100)
	go func() {
		defer close(sizes)
		last := int32(0)
		for event := range events.ResultChan() {
			wl, is := event.Object.(*kueue.Workload)
			if !is || wl.Status.Admission == nil || metav1.GetControllerOf(wl) == nil ||
				metav1.GetControllerOf(wl).Name != "elastic" {
				continue
			}
			if now := *wl.Status.Admission.PodSetAssignments[0].Count; now != last {
				last = now
				sizes <- decidedSize{now, time.Now()}
			}
		}
	}()
	return sizes
}

// untilSize waits until the size is decided, and returns when that was seen.
func (r *resizeWorld) untilSize(size int32) time.Time {
	r.Helper()
	return await(r, fmt.Sprintf("size %d is decided", size), r.sizes,
		func(s decidedSize) (time.Time, bool) { return s.at, s.to == size })
}

// untilRound waits until all members of a new round of that size have loaded, and returns when the last one had.
func (r *resizeWorld) untilRound(size int) time.Time {
	r.Helper()
	members, last := map[int]int{}, map[int]time.Time{}
	return await(r, fmt.Sprintf("all %d members of a new round have loaded", size),
		r.lines, func(line string) (time.Time, bool) {
			round, of, at := parse(line)
			if round <= r.round || of != size {
				return time.Time{}, false
			}
			if members[round]++; at.After(last[round]) {
				last[round] = at
			}
			if members[round] == size {
				r.round = round
			}
			return last[round], members[round] == size
		})
}

// parse parses a line of trainScript: the round, its size, and when the line was written.
func parse(line string) (round, size int, at time.Time) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return 0, 0, time.Time{}
	}
	round, _ = strconv.Atoi(fields[0])
	size, _ = strconv.Atoi(fields[1])
	seconds, micros, _ := strings.Cut(fields[2], ".")
	s, _ := strconv.ParseInt(seconds, 10, 64)
	us, _ := strconv.ParseInt(micros, 10, 64)
	return round, size, time.Unix(s, us*1000)
}

// await receives from the channel until the condition holds for an element, and returns the condition's result.
func await[E, R any](w *resizeWorld, what string, from <-chan E, holds func(E) (R, bool)) R {
	w.Helper()
	timeout := time.After(harness.Patience)
	for {
		select {
		case e, open := <-from:
			if !open {
				w.Fatalf("the events ended while waiting until %s", what)
			}
			if found, ok := holds(e); ok {
				return found
			}
		case <-timeout:
			w.Fatalf("timed out after %s waiting until %s: %s", harness.Patience, what, w.State())
		}
	}
}

// floor starts count of the programs, and returns how long it takes to stop them all and to start them again until all
// have loaded.
func (r *resizeWorld) floor(count int) time.Duration {
	r.Helper()
	start := func(round int) []*exec.Cmd {
		var out []*exec.Cmd
		for range count {
			c := exec.CommandContext(r.Context(), "bash", "-c", trainScript)
			c.Env = append(os.Environ(), "FOLDER="+r.folder, fmt.Sprint("LATTICE_ROUND=", round),
				fmt.Sprint("WORLD_SIZE=", count))
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := c.Start(); err != nil {
				r.Fatal(err)
			}
			r.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // the whole process group; it may have ended
			out = append(out, c)
		}
		return out
	}
	first := start(r.round + 1)
	r.untilRound(count)
	began := time.Now()
	for _, c := range first {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			r.Fatal(err)
		}
	}
	for _, c := range first {
		if err := c.Wait(); err != nil {
			r.Fatalf("a program that was asked to stop failed: %v", err)
		}
	}
	start(r.round + 1)
	return r.untilRound(count).Sub(began)
}

// job returns a TrainingJob of most workers that run the script. An elastic one has the agent and may shrink to
// smaller.
func (r *resizeWorld) job(name string, most int32, elastic bool, script string) *breezeml.TrainingJob {
	least := most
	if elastic {
		least = smaller
	}
	job := r.TrainingJob(name, least, most, r.folder, script)
	job.Spec.InjectLattice = elastic
	return job
}
