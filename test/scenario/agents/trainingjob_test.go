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

// TestAResizedTrainingJobKeepsItsRemainingPods: it starts with all there is, gives
// to one that comes, and takes again what that leaves. Those who stay are told and stay in their pods.
func TestAResizedTrainingJobKeepsItsRemainingPods(t *testing.T) {
	w := newWorld(t)
	w.Queue("default", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")})
	const trains = `trap 'exit 0' TERM
		echo "$LATTICE_ROUND $RANK $WORLD_SIZE $(hostname) $(date +%s%N)" >> $FOLDER/rounds
		sleep 1000 & wait $!`
	w.Create(w.trainingJob("elastic", 2, 4, trains))
	first := w.round(0, 4)
	w.Create(w.trainingJob("rigid", 2, 2, `sleep 1000`))
	decided := w.untilSize("elastic", 2)
	second := w.round(first.number, 2)
	t.Logf("shrunk 4 -> 2: all members in the new round %s after the decision", second.began.Sub(decided).Round(time.Millisecond))
	for _, host := range second.hosts {
		if !slices.Contains(first.hosts, host) {
			t.Errorf("%s is in the second round and was not in the first", host)
		}
	}
	w.Delete(w.trainingJob("rigid", 2, 2, ""))
	decided = w.untilSize("elastic", 4)
	third := w.round(second.number, 4)
	t.Logf("grown 2 -> 4: all members in the new round %s after the decision, start of their pods included", third.began.Sub(decided).Round(time.Millisecond))
	for _, host := range second.hosts {
		if !slices.Contains(third.hosts, host) {
			t.Errorf("%s was in the second round and is not in the third", host)
		}
	}
}

// roundSeen is a round as its members have told of it.
type roundSeen struct {
	number int
	hosts  []string
	// began is when the last of them did.
	began time.Time
}

// round waits for one after that with the number, of that size, in which all run.
func (w *world) round(after, size int) (found roundSeen) {
	w.Helper()
	w.untilSaid("rounds", fmt.Sprintf("a round of %d after round %d", size, after), func(lines []string) bool {
		rounds := map[int]*roundSeen{}
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
				r = &roundSeen{number: number}
				rounds[number] = r
			}
			r.hosts = append(r.hosts, fields[3])
			if at := time.Unix(0, nanoseconds); at.After(r.began) {
				r.began = at
			}
			if len(r.hosts) == size {
				found = *r
			}
		}
		return found.number > 0
	})
	return found
}

// untilSize waits until the job is to be so large, and says when it was told.
func (w *world) untilSize(name string, size int32) time.Time {
	w.Helper()
	harness.UntilOne(w.World, &breezeml.TrainingJobList{}, name, fmt.Sprintf("has size %d", size), func(job *breezeml.TrainingJob) bool { return job.Status.CurrentSize == size })
	return time.Now()
}

func (w *world) trainingJob(name string, least, most int32, script string) *breezeml.TrainingJob {
	return w.TrainingJob(name, least, most, w.folder, script)
}
