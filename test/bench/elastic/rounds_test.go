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
	// smaller and larger are the sizes between which the job is resized, so many times each way.
	smaller, larger, repeats = 2, 4, 8
	// beyond is how much longer a resize may take than the program saves and loads.
	beyond = time.Second
	// trains saves for 0.2 s, loads for 0.2 s, and then says in which round it is.
	trains = `trap 'sleep 0.2; exit 0' TERM
sleep 0.2
echo "$LATTICE_ROUND $WORLD_SIZE $EPOCHREALTIME" > "$FOLDER/rounds"
sleep 1000 & wait $!`
)

// TestResize: from the decision about another size to the last member of the new round that
// has loaded what was saved, in pods that run as processes of this machine. Beside it the
// floor: as many of the same processes are stopped and started by hand.
func TestResize(t *testing.T) {
	w := newTraining(t)
	w.Queue("default", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")})
	w.Create(w.job("elastic", larger, true, trains))
	w.untilRound(larger)
	var shrunk, grown, asked []time.Duration
	for range repeats {
		began := time.Now()
		rigid := w.job("rigid", smaller, false, `trap 'exit 0' TERM; sleep 1000 & wait $!`)
		w.Create(rigid)
		decided := w.untilSize(smaller)
		at := w.untilRound(smaller)
		shrunk, asked = append(shrunk, at.Sub(decided)), append(asked, at.Sub(began))
		w.Delete(rigid)
		decided = w.untilSize(larger)
		grown = append(grown, w.untilRound(larger).Sub(decided))
	}
	floor := w.byHand(larger)
	reach := func(what string, took []time.Duration) {
		longest := slices.Max(took)
		figure.Note(fmt.Sprintf("%s, median of %d", what, len(took)), figure.Seconds(middle(took)))
		figure.Reach(t, what+", longest", figure.Seconds(longest), figure.Seconds(floor+beyond), longest <= floor+beyond)
	}
	reach("4 -> 2: decision to all in the round", shrunk)
	reach("2 -> 4, two of them new pods", grown)
	figure.Note("  4 -> 2 from the creation of who it is for, median", figure.Seconds(middle(asked)))
	figure.Note("  save and load of 4 by hand, the floor", figure.Seconds(floor))
}

func middle(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

// training is a namespace, and what the job in it has come to.
type training struct {
	*harness.World
	folder string
	// said are the lines of the programs, sizes those that were decided, told as they come.
	said  <-chan string
	sizes <-chan sized
	// round is the last that was complete.
	round int
}

type sized struct {
	to int32
	at time.Time
}

func newTraining(t *testing.T) *training {
	w := &training{World: harness.New(t), folder: t.TempDir()}
	w.said = w.listen()
	w.sizes = w.decisions()
	return w
}

// listen has the programs heard that write to rounds in the folder.
func (w *training) listen() <-chan string {
	w.Helper()
	path := filepath.Join(w.folder, "rounds")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		w.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // one that writes, too: so it has no end
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { pipe.Close() })
	said := make(chan string, 100)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	return said
}

// decisions follows the size that the job's Workload is granted.
func (w *training) decisions() <-chan sized {
	w.Helper()
	events, err := w.Client.Watch(w.Context(), &kueue.WorkloadList{}, client.InNamespace(w.Namespace))
	if err != nil {
		w.Fatal(err)
	}
	sizes := make(chan sized, 100)
	go func() {
		defer close(sizes)
		last := int32(0)
		for event := range events.ResultChan() {
			wl, is := event.Object.(*kueue.Workload)
			if !is || wl.Status.Admission == nil || metav1.GetControllerOf(wl) == nil || metav1.GetControllerOf(wl).Name != "elastic" {
				continue
			}
			if now := *wl.Status.Admission.PodSetAssignments[0].Count; now != last {
				last = now
				sizes <- sized{now, time.Now()}
			}
		}
	}()
	return sizes
}

// untilSize waits until the size is decided, and says when it was.
func (w *training) untilSize(size int32) time.Time {
	w.Helper()
	return await(w, fmt.Sprintf("size %d is decided", size), w.sizes, func(s sized) (time.Time, bool) { return s.at, s.to == size })
}

// untilRound waits until all of another round of that size have loaded, and says when the
// last had.
func (w *training) untilRound(size int) time.Time {
	w.Helper()
	members, last := map[int]int{}, map[int]time.Time{}
	return await(w, fmt.Sprintf("a round of %d", size), w.said, func(line string) (time.Time, bool) {
		round, of, at := parse(line)
		if round <= w.round || of != size {
			return time.Time{}, false
		}
		if members[round]++; at.After(last[round]) {
			last[round] = at
		}
		if members[round] == size {
			w.round = round
		}
		return last[round], members[round] == size
	})
}

// parse reads a line of trains: the round, its size, and when it was written.
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

// await waits until the condition holds for something that comes, and gives what it says of that.
func await[E, R any](w *training, what string, from <-chan E, holds func(E) (R, bool)) R {
	w.Helper()
	late := time.After(harness.Patience)
	for {
		select {
		case e, open := <-from:
			if !open {
				w.Fatalf("nothing comes any more, before %s", what)
			}
			if found, is := holds(e); is {
				return found
			}
		case <-late:
			w.Fatalf("waited %s until %s: %s", harness.Patience, what, w.State())
		}
	}
}

// byHand starts so many of the programs, stops and starts them all, and says how long that takes them.
func (w *training) byHand(count int) time.Duration {
	w.Helper()
	start := func(round int) []*exec.Cmd {
		var out []*exec.Cmd
		for range count {
			c := exec.CommandContext(w.Context(), "bash", "-c", trains)
			c.Env = append(os.Environ(), "FOLDER="+w.folder, fmt.Sprint("LATTICE_ROUND=", round), fmt.Sprint("WORLD_SIZE=", count))
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := c.Start(); err != nil {
				w.Fatal(err)
			}
			w.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // what it started has gone with it, or does now
			out = append(out, c)
		}
		return out
	}
	first := start(w.round + 1)
	w.untilRound(count)
	began := time.Now()
	for _, c := range first {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			w.Fatal(err)
		}
	}
	for _, c := range first {
		if err := c.Wait(); err != nil {
			w.Fatalf("a program that was asked to stop: %v", err)
		}
	}
	start(w.round + 1)
	return w.untilRound(count).Sub(began)
}

// job is a TrainingJob of so many workers, or of fewer if it is elastic and so has the agent, that run the script.
func (w *training) job(name string, most int32, elastic bool, script string) *breezeml.TrainingJob {
	least := most
	if elastic {
		least = smaller
	}
	job := w.TrainingJob(name, least, most, w.folder, script)
	job.Spec.InjectLattice = elastic
	return job
}
