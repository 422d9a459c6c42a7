package simulate

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/sim"
)

// UsersAnnotation on a LocalQueue lists the users of a log whose jobs it gets, such as "12, 17". They are not in the
// round of the others. On a WorkloadPriorityClass it lists those whose jobs have its priority.
const UsersAnnotation = "muster.dev/simulated-users"

// ReadTrace reads the jobs of a log, plain or compressed by gzip: a list in JSON, or the Standard Workload Format. Jobs
// of a list are elastic unless rigid is set.
func ReadTrace(log io.Reader, rigid bool) ([]sim.Job, error) {
	text := bufio.NewReader(log)
	if magic, _ := text.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, err
		}
		text = bufio.NewReader(unzipped)
	}
	jobs, err := []sim.Job(nil), error(nil)
	if first, _ := text.Peek(1); len(first) == 1 && (first[0] == '[' || first[0] == '{') {
		jobs, err = sim.ReadList(text, rigid)
	} else {
		jobs, err = sim.ReadSWF(text)
	}
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("it has no job with a run time and a number of processors")
	}
	return jobs, err
}

// usersOf returns the users that the annotation of an object lists.
func usersOf(object client.Object) (users []string) {
	for user := range strings.SplitSeq(object.GetAnnotations()[UsersAnnotation], ",") {
		if user = strings.TrimSpace(user); user != "" {
			users = append(users, user)
		}
	}
	return users
}

// priorities returns the priorities of the jobs of users that the annotation of a WorkloadPriorityClass lists.
func (s *Setup) priorities() (map[string]int32, error) {
	out, of := map[string]int32{}, map[string]string{}
	for _, class := range s.Priorities {
		for _, user := range usersOf(class) {
			if other, listed := of[user]; listed && other != class.Name {
				return nil, fmt.Errorf("the WorkloadPriorityClasses %s and %s both list the user %q", other, class.Name, user)
			}
			out[user], of[user] = class.Value, class.Name
		}
	}
	return out, nil
}

// assign gives each job the LocalQueue, and the priority, of its user. Users that no annotation lists take turns in the
// order of their first jobs: the first one gets the first LocalQueue by namespace and name, and so on, except
// LocalQueues with an annotation.
func (s *Setup) assign(jobs []sim.Job) error {
	byUser, round := map[string]*engine.Key{}, []engine.Key{}
	for _, q := range s.LocalQueues {
		key, users := engine.Key(client.ObjectKeyFromObject(q)), usersOf(q)
		if len(users) == 0 {
			round = append(round, key)
		}
		for _, user := range users {
			if other := byUser[user]; other != nil && *other != key {
				return fmt.Errorf("the LocalQueues %s and %s both list the user %q", other, key, user)
			}
			byUser[user] = &key
		}
	}
	slices.SortFunc(round, func(a, b engine.Key) int { return strings.Compare(a.String(), b.String()) })
	priorities, err := s.priorities()
	if err != nil {
		return err
	}
	turn := 0
	for i := range jobs {
		if priority, listed := priorities[jobs[i].User]; listed {
			jobs[i].Priority = priority
		}
		queue := byUser[jobs[i].User]
		if queue == nil {
			if len(round) == 0 {
				return fmt.Errorf("no LocalQueue lists the user %q in its annotation %s, and each has one", jobs[i].User,
					UsersAnnotation)
			}
			queue = &round[turn%len(round)]
			byUser[jobs[i].User], turn = queue, turn+1
		}
		jobs[i].Namespace, jobs[i].Queue = queue.Namespace, queue.Name
		// Durations are learned as in production: for each namespace.
		jobs[i].Time.Kind, jobs[i].Time.Wider = queue.Namespace+"/"+jobs[i].Time.Kind, queue.Namespace
	}
	return nil
}

// shape says what pods of a job request: perPod units of the resource, or the largest divisor of the job's size below
// that, so that a job of 12 GPUs with at most 8 a pod has 2 pods of 6. Pods of elastic jobs have one.
func shape(job *sim.Job, name corev1.ResourceName, perPod int32) {
	each := int32(1)
	if job.Min == job.Max && job.Speed == nil {
		for each = min(perPod, job.Max); job.Max%each != 0; {
			each--
		}
	}
	job.Min, job.Max = job.Min/each, job.Max/each
	job.Pod = &engine.PodSet{PerPod: map[string]int64{string(name): one(name) * int64(each)},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
}

// sizeOf returns the largest size of a job, in units of the resource.
func sizeOf(job *sim.Job, name corev1.ResourceName) int64 {
	return int64(job.Max) * job.Pod.PerPod[string(name)] / one(name)
}

// queuesOf returns the ClusterQueue of each LocalQueue, and the names of the ClusterQueues that have any, in order.
func (s *Setup) queuesOf() (of map[engine.Key]string, names []string) {
	of = map[engine.Key]string{}
	for _, q := range s.LocalQueues {
		of[engine.Key(client.ObjectKeyFromObject(q))] = string(q.Spec.ClusterQueue)
	}
	names = slices.Sorted(maps.Values(of))
	return of, slices.Compact(names)
}
