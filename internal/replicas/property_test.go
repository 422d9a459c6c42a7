package replicas

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// cluster has a group of replicas in memory: its pods, the status, and how often each replica has finished by itself.
type cluster struct {
	t      *rapid.T
	group  Group
	pods   map[string]*corev1.Pod
	status map[int32]Record
	ends   map[int32]int
	now    time.Duration
	// made counts pods, so that each gets its own UID.
	made int
	// due is when the next restart is, as far as the last reconcile said.
	due time.Time
}

func (c *cluster) look() *Roster {
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		pods = append(pods, c.pods[name])
	}
	return Observe("job", []Group{c.group}, func(_ string, index int32) Record { return c.status[index] }, pods)
}

// reconcile does what a job API does with a roster, stops after that number of writes, and returns how many it made.
func (c *cluster) reconcile(writes int) int {
	left := writes
	write := func() bool { left--; return left >= 0 }
	roster := c.look()
	_, c.due = roster.Restart(now.Add(c.now))
	status := map[int32]Record{}
	for i := range roster.Replicas {
		status[int32(i)] = Record{Restarts: roster.Replicas[i].Restarts, Settled: roster.Replicas[i].Settled,
			Phase: roster.Replicas[i].Phase}
	}
	if !maps.Equal(status, c.status) {
		if !write() {
			return writes
		}
		for i, m := range status {
			if m.Restarts < c.status[i].Restarts || m.Restarts > max(c.group.Restart.Limit, 0) {
				c.t.Fatalf("replica %d has %d restarts after %d, with a limit of %d", i, m.Restarts, c.status[i].Restarts,
					c.group.Restart.Limit)
			}
		}
		c.status = status
	}
	for _, pod := range roster.Outdated() {
		if !write() {
			return writes
		}
		c.delete(pod)
	}
	for _, r := range roster.Missing() {
		if !write() {
			return writes
		}
		if c.pods[r.Name] != nil {
			c.t.Fatalf("pod %s is created although it exists", r.Name)
		}
		c.made++
		pod := podOf(r.Name, int(r.Restarts)).bound().Pod
		pod.UID, pod.Status.Phase = "", corev1.PodPending
		c.pods[r.Name] = pod
	}
	return writes - left
}

// delete deletes a pod gracefully; a finished pod is gone at once.
func (c *cluster) delete(pod *corev1.Pod) {
	if IsFinished(pod) {
		delete(c.pods, pod.Name)
	} else if !IsTerminating(pod) {
		podBuilder{pod}.deleted(c.now)
	}
}

// step advances one pod.
func (c *cluster) step(name string, fails bool) {
	pod := c.pods[name]
	c.now += 2 * time.Second
	b := podBuilder{pod}
	switch {
	case IsTerminating(pod) && pod.Status.Phase == corev1.PodRunning:
		b.ended(143, c.now)
	case IsTerminating(pod) && IsFinished(pod) && *pod.DeletionGracePeriodSeconds > 0:
		b.removed(c.now)
	case IsTerminating(pod):
		delete(c.pods, name)
	case IsFinished(pod):
	case pod.Status.Phase == corev1.PodPending:
		b.running()
	default:
		code := int32(0)
		if fails {
			code = 1
		}
		b.ended(code, c.now)
		var index int32
		if _, err := fmt.Sscanf(name, "job-worker-%d", &index); err != nil {
			c.t.Fatal(err)
		}
		c.ends[index]++
	}
}

// TestReplicasRestartWithinTheirBudget: whenever the operator is killed, and whatever pods users delete, a replica has
// one pod at a time, finishes by itself at most once more often than it may restart, and in the end all replicas are
// final and nothing is left to do.
func TestReplicasRestartWithinTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, pods: map[string]*corev1.Pod{}, status: map[int32]Record{}, ends: map[int32]int{}, group: Group{
			Name: "worker", Count: rapid.Int32Range(0, 4).Draw(t, "replicas"),
			Restart: Restart{
				OnFailure: rapid.Bool().Draw(t, "on failure"), OnSuccess: rapid.Bool().Draw(t, "on success"),
				Limit: rapid.Int32Range(0, 3).Draw(t, "limit"),
			},
		}}
		for range rapid.IntRange(0, 40).Draw(t, "turbulent steps") {
			names := slices.Sorted(maps.Keys(c.pods))
			switch op := rapid.IntRange(0, 9).Draw(t, "step"); {
			case op < 4 || len(names) == 0:
				c.reconcile(rapid.IntRange(0, 6).Draw(t, "writes before it is killed"))
			case op == 4:
				if pod := c.pods[rapid.SampledFrom(names).Draw(t, "deleted by hand")]; !IsFinished(pod) {
					c.delete(pod)
				}
			default:
				c.step(rapid.SampledFrom(names).Draw(t, "pod"), rapid.Bool().Draw(t, "fails"))
			}
		}
		for turn := 0; ; turn++ {
			wrote := c.reconcile(1000)
			before := c.now
			for _, name := range slices.Sorted(maps.Keys(c.pods)) {
				if !IsFinished(c.pods[name]) || IsTerminating(c.pods[name]) {
					c.step(name, rapid.Bool().Draw(t, "fails"))
				}
			}
			if wrote == 0 && c.now == before {
				if c.due.IsZero() {
					break
				}
				c.now = max(c.now, c.due.Sub(now))
			}
			if turn > 200 {
				t.Fatal("the group does not come to rest")
			}
		}
		roster := c.look()
		for i := range roster.Replicas {
			r := &roster.Replicas[i]
			if !r.Final() {
				t.Fatalf("%s is at rest in phase %s, want a final one", r.Name, r.Phase)
			}
			if ends := c.ends[r.Index]; ends != int(r.Restarts)+1 {
				t.Fatalf("%s has finished %d times, with %d restarts", r.Name, ends, r.Restarts)
			}
			if r.Phase == Failed && c.group.Restart.OnFailure && r.Restarts < c.group.Restart.Limit {
				t.Fatalf("%s failed after %d of %d restarts", r.Name, r.Restarts, c.group.Restart.Limit)
			}
		}
		if len(roster.Surplus) > 0 || len(c.pods) > len(roster.Replicas) {
			t.Fatalf("surplus pods are left: %v", slices.Sorted(maps.Keys(c.pods)))
		}
	})
}
