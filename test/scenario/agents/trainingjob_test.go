package agents

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// trainingScript reports its round in the file rounds.
const trainingScript = `trap 'exit 143' TERM
	echo "$LATTICE_ROUND $RANK $WORLD_SIZE $(hostname) $(date +%s%N)" >> $FOLDER/rounds
	sleep 1000 & wait $!`

// TestAReplacedPodCostsOneRound: the pod of a job that may run with fewer is deleted. The other members wait for its
// replacement, so that each of them is stopped and begins again once, not twice.
func TestAReplacedPodCostsOneRound(t *testing.T) {
	for what, create := range map[string]func(*world){
		"TrainingJob": func(w *world) {
			w.Queue("default", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("300m")})
			w.Create(w.trainingJob("job", 1, 3, trainingScript))
		},
		"elastic JobSet": func(w *world) {
			js := w.agentJobSet(3, trainingScript)
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"muster.dev/min-replicas": "1"}
			w.Create(js)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			create(w)
			first := w.untilRound(0, 3)
			for _, pod := range w.podsByUID() {
				w.Delete(&pod)
				break
			}
			second := w.untilRound(first.number, 3)
			if first.number != 1 || second.number != 2 {
				t.Errorf("rounds of all three pods have the numbers %d and %d, want 1 and 2: none in between is smaller",
					first.number, second.number)
			}
		})
	}
}

// TestAResizedTrainingJobKeepsItsRemainingPods: a TrainingJob starts with the whole quota, shrinks for another job, and
// grows again when that is deleted. The workers that remain join the new round in the same pods.
func TestAResizedTrainingJobKeepsItsRemainingPods(t *testing.T) {
	w := newWorld(t)
	w.Queue("default", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")})
	w.Create(w.trainingJob("elastic", 2, 4, trainingScript))
	first := w.untilRound(0, 4)
	w.Create(w.trainingJob("rigid", 2, 2, `sleep 1000`))
	decided := w.untilSize("elastic", 2)
	second := w.untilRound(first.number, 2)
	t.Logf("resized from 4 to 2: all workers were in the new round %s after the decision",
		second.start.Sub(decided).Round(time.Millisecond))
	for _, host := range second.hosts {
		if !slices.Contains(first.hosts, host) {
			t.Errorf("pod %s is in the second round and was not in the first", host)
		}
	}
	w.Delete(w.trainingJob("rigid", 2, 2, ""))
	decided = w.untilSize("elastic", 4)
	third := w.untilRound(second.number, 4)
	t.Logf("resized from 2 to 4: all workers were in the new round %s after the decision, including the start of their pods",
		third.start.Sub(decided).Round(time.Millisecond))
	for _, host := range second.hosts {
		if !slices.Contains(third.hosts, host) {
			t.Errorf("pod %s was in the second round and is not in the third", host)
		}
	}
}

// reportedRound is a round as its workers have reported it.
type reportedRound struct {
	number int
	hosts  []string
	// start is when the last worker started.
	start time.Time
}

// untilRound waits until all workers of a round of this size have started, and returns the round. Its number must be
// larger than after.
func (w *world) untilRound(after, size int) (found reportedRound) {
	w.Helper()
	w.untilFile("rounds", fmt.Sprintf("a round of %d workers after round %d", size, after), func(lines []string) bool {
		rounds := map[int]*reportedRound{}
		for _, line := range lines {
			fields := strings.Fields(line)
			if len(fields) != 5 {
				continue
			}
			number, _ := strconv.Atoi(fields[0])
			nanoseconds, _ := strconv.ParseInt(fields[4], 10, 64)
			if fields[2] != fmt.Sprint(size) || number <= after {
				continue
			}
			r := rounds[number]
			if r == nil {
				r = &reportedRound{number: number}
				rounds[number] = r
			}
			r.hosts = append(r.hosts, fields[3])
			if at := time.Unix(0, nanoseconds); at.After(r.start) {
				r.start = at
			}
			if len(r.hosts) == size {
				found = *r
			}
		}
		return found.number > 0
	})
	return found
}

// untilSize waits until the status of the job has this size, and returns when that was observed.
func (w *world) untilSize(name string, size int32) time.Time {
	w.Helper()
	harness.UntilOne(w.World, &breezeml.TrainingJobList{}, name, fmt.Sprintf("has size %d", size),
		func(job *breezeml.TrainingJob) bool { return job.Status.CurrentSize == size })
	return time.Now()
}

// trainingJob returns a TrainingJob whose script finds the folder of the world in $FOLDER.
func (w *world) trainingJob(name string, least, most int32, script string) *breezeml.TrainingJob {
	return w.TrainingJob(name, least, most, w.folder, script)
}
