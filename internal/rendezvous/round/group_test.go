package round_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

var timeouts = round.Timeouts{Gather: 30 * time.Second, Presence: time.Minute}

// simulation is a group with agents that follow its answers.
type simulation struct {
	t     reporter
	group *round.Group
	now   time.Time
	pods  map[string]*agent
	joins int
	// slow makes agents report that they run a round only with their next request.
	slow bool
	// target is how many pods the job is to have, 0 if the operator does not know.
	target int
	// parts are the answers that were given, by round ID.
	parts map[string][]protocol.Round
}

// reporter is a testing.T or a rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

type agent struct {
	pod          round.Pod
	request      protocol.Request
	observed     protocol.Request // the last request that the operator received
	disconnected bool             // the operator cannot receive its requests
	unreported   bool             // it runs its round, but has not reported that yet
	overs        int
	held         bool // its request is held, since the version at which it had no answer
	version      uint64
}

func newSimulation(t reporter, min, max int) *simulation {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &simulation{t: t, now: now, group: round.New(min, max, timeouts, now), pods: map[string]*agent{},
		parts: map[string][]protocol.Round{}}
}

func name(index int) string { return fmt.Sprintf("worker-%d", index) }

// addPods adds pods whose agents have not started yet.
func (s *simulation) addPods(indices ...int) {
	for _, i := range indices {
		pod := round.Pod{UID: fmt.Sprintf("%d-%d", i, s.joins), Name: name(i), Index: []int{i}}
		s.joins++
		s.pods[name(i)] = &agent{pod: pod}
		s.group.AddPod(pod, s.now)
	}
}

// wait makes the agents wait for a round.
func (s *simulation) wait(failure *protocol.Failure, indices ...int) {
	for _, i := range indices {
		a := s.pods[name(i)]
		s.joins++
		a.request = protocol.Request{
			State: protocol.Waiting, Join: fmt.Sprint("join-", s.joins), Round: a.request.Round, Failure: failure,
			Address: "10.0.0." + fmt.Sprint(i), Port: 10000 + s.joins,
		}
		s.send(a)
	}
}

func (s *simulation) start(indices ...int) {
	s.addPods(indices...)
	s.wait(nil, indices...)
}

func (s *simulation) send(a *agent) {
	a.unreported = a.unreported && a.disconnected
	if a.request.State != "" && !a.disconnected {
		a.observed, a.held = a.request, false
		s.group.Observe(a.pod.UID, a.request, s.now)
	}
}

func (s *simulation) removePod(index int) {
	s.group.RemovePod(s.pods[name(index)].pod.UID, s.now)
	delete(s.pods, name(index))
}

// settle lets all agents act until there are no more answers.
func (s *simulation) settle() {
	for moved := true; moved; {
		moved = false
		for i := range 100 {
			if a := s.pods[name(i)]; a != nil && !a.disconnected && s.obey(a, i) {
				moved = true
			}
		}
	}
}

// obey makes an agent act on its answer, or report that it runs.
func (s *simulation) obey(a *agent, index int) bool {
	if a.unreported {
		s.send(a)
		return true
	}
	answer, says := s.group.Answer(a.pod.UID)
	if says && a.held && a.version == s.group.Version() {
		s.t.Errorf("%s gets the answer %+v, but nothing made its held request ask again", a.pod.Name, answer)
	}
	a.held, a.version = !says, s.group.Version()
	switch {
	case !says:
		return false
	case answer.Round != nil:
		s.parts[answer.Round.ID] = append(s.parts[answer.Round.ID], *answer.Round)
		a.request.Master, a.request.ID = answer.Round.Master(), answer.Round.ID
		a.request.State, a.request.Round, a.request.Rank, a.request.Size = protocol.Running, answer.Round.Number,
			answer.Round.Rank, answer.Round.Size
		a.request.Failure = nil
		if a.unreported = s.slow; !s.slow {
			s.send(a)
		}
		return true
	case answer.Over != "":
		a.overs++
		s.wait(nil, index)
		return true
	}
	return false
}

func (s *simulation) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, name := range s.podNames() {
		s.send(s.pods[name]) // agents repeat their requests
	}
	s.group.Tick(s.now)
	s.settle()
}

// membership describes the members of the round by rank, as "3: 0=1/2 1=2/2": the round's number, then rank=index/size.
func (s *simulation) membership() string {
	var number int64
	var parts []string
	for rank := range 100 {
		for i := range 100 {
			a := s.pods[name(i)]
			if a == nil || a.request.State != protocol.Running || a.request.Rank != rank || a.disconnected {
				continue
			}
			number = max(number, a.request.Round)
			parts = append(parts, fmt.Sprintf("%d=%d/%d", rank, i, a.request.Size))
		}
	}
	return fmt.Sprintf("%d: %s", number, strings.Join(parts, " "))
}

func (s *simulation) want(want string) {
	s.t.Helper()
	s.settle()
	if got := s.membership(); got != want {
		s.t.Errorf("members of the round = %q, want %q", got, want)
	}
}

// podNames returns the sorted names of all pods.
func (s *simulation) podNames() []string { return slices.Sorted(maps.Keys(s.pods)) }

// restart replaces the operator: its state is lost, and the agents send their requests again.
func (s *simulation) restart(min, max int) { s.restartInOrder(min, max, s.podNames()) }

// restartInOrder replaces the operator; the new one gets the requests in this order.
func (s *simulation) restartInOrder(min, max int, order []string) {
	s.now = s.now.Add(time.Millisecond)
	s.group = round.New(min, max, timeouts, s.now)
	s.group.SetTarget(s.target, s.now)
	for _, name := range order {
		s.pods[name].observed = protocol.Request{}
		s.group.AddPod(s.pods[name].pod, s.now)
	}
	for _, name := range order {
		s.send(s.pods[name])
	}
}

func TestRoundBeginsWhenAllPodsWait(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.addPods(0, 1, 2)
	r.wait(nil, 2)
	r.wait(nil, 0)
	r.want("0: ")
	r.wait(nil, 1)
	r.want("1: 0=0/3 1=1/3 2=2/3")
}

func TestSlowMemberJoinsLater(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.addPods(0, 1, 2)
	r.wait(nil, 0, 1)
	r.pass(timeouts.Gather - time.Second)
	r.want("0: ")
	r.pass(time.Second)
	r.want("1: 0=0/2 1=1/2")
	r.wait(nil, 2)
	r.want("2: 0=0/3 1=1/3 2=2/3")
}

func TestNoRoundBelowTheMinimum(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0)
	r.pass(time.Hour)
	r.want("0: ")
}

func TestLostMemberEndsTheRound(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1, 2)
	r.want("1: 0=0/3 1=1/3 2=2/3")
	r.removePod(0)
	r.want("2: 0=1/2 1=2/2")
	r.removePod(1) // now there are fewer than the minimum
	r.want("0: ")
	r.start(5)
	r.want("3: 0=2/2 1=5/2")
}

// TestReplacedMemberCostsOneRound: the members of a round that has lost a pod wait for its replacement, which their job
// creates only once the lost pod is gone. Otherwise they would be stopped twice.
func TestReplacedMemberCostsOneRound(t *testing.T) {
	r := newSimulation(t, 1, 4)
	r.group.SetTarget(3, r.now)
	r.start(0, 1, 2)
	r.want("1: 0=0/3 1=1/3 2=2/3")
	r.removePod(1)
	r.want("0: ")
	r.pass(time.Second)
	r.addPods(1)
	r.want("0: ")
	r.pass(time.Second)
	r.wait(nil, 1)
	r.want("2: 0=0/3 1=1/3 2=2/3")
	if n := r.pods[name(0)].overs; n != 1 {
		t.Errorf("a member was stopped %d times for a pod that was replaced, want once", n)
	}
}

// TestLossThatTheOthersNoticeFirst: the commands of the other members may fail before the operator sees that the pod
// is gone, such as with its node.
func TestLossThatTheOthersNoticeFirst(t *testing.T) {
	r := newSimulation(t, 1, 4)
	r.group.SetTarget(3, r.now)
	r.start(0, 1, 2)
	r.settle()
	r.wait(&protocol.Failure{ExitCode: 1, Infrastructure: true}, 0, 2)
	r.pods[name(1)].disconnected = true
	r.pass(timeouts.Gather - time.Second)
	r.removePod(1)
	r.pass(10 * time.Second)
	r.want("0: ")
	r.start(1)
	r.want("2: 0=0/3 1=1/3 2=2/3")
}

func TestReplacementThatDoesNotComeIsNotWaitedForLonger(t *testing.T) {
	r := newSimulation(t, 1, 4)
	r.group.SetTarget(3, r.now)
	r.start(0, 1, 2)
	r.settle()
	r.removePod(1)
	r.settle()
	r.pass(timeouts.Gather - time.Second)
	r.want("0: ")
	r.pass(time.Second)
	r.want("2: 0=0/2 1=2/2")
	r.start(1) // it comes late, and alone
	r.want("3: 0=0/3 1=1/3 2=2/3")
}

// TestPodThatNeverAsksIsNotMissing: it exists. A later round waits only for the replacement of the member that was
// lost.
func TestPodThatNeverAsksIsNotMissing(t *testing.T) {
	r := newSimulation(t, 1, 4)
	r.group.SetTarget(4, r.now)
	r.start(0, 1, 2)
	r.addPods(3)
	r.pass(timeouts.Gather)
	r.want("1: 0=0/3 1=1/3 2=2/3")
	r.removePod(1)
	r.want("0: ")
	r.start(1)
	r.want("2: 0=0/3 1=1/3 2=2/3")
}

// TestSmallerJobWaitsForNoReplacement: the new size of the job may be known before or after its pods are gone.
func TestSmallerJobWaitsForNoReplacement(t *testing.T) {
	for what, shrink := range map[string]func(*simulation){
		"the size first": func(r *simulation) { r.group.SetTarget(2, r.now); r.removePod(2) },
		"the pod first":  func(r *simulation) { r.removePod(2); r.settle(); r.group.SetTarget(2, r.now) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newSimulation(t, 1, 4)
			r.group.SetTarget(3, r.now)
			r.start(0, 1, 2)
			r.settle()
			shrink(r)
			r.want("2: 0=0/2 1=1/2")
		})
	}
}

// TestGrownJobBeginsOneRound: its new pods are created one after the other. The first does not join before the second,
// unless that takes too long.
func TestGrownJobBeginsOneRound(t *testing.T) {
	for _, comes := range []bool{true, false} {
		r := newSimulation(t, 1, 4)
		r.group.SetTarget(2, r.now)
		r.start(0, 1)
		r.want("1: 0=0/2 1=1/2")
		r.pass(time.Hour)
		r.group.SetTarget(4, r.now)
		r.start(2)
		r.want("1: 0=0/2 1=1/2")
		if comes {
			r.start(3)
			r.want("2: 0=0/4 1=1/4 2=2/4 3=3/4")
		} else {
			r.pass(timeouts.Gather)
			r.want("2: 0=0/3 1=1/3 2=2/3")
		}
	}
}

// TestFinishedMemberIsNotReplaced: of three workers one has succeeded, and its pod may be gone. Another is lost. The
// round waits for its replacement, for none of the first one, and for no more pods that the job was given since.
func TestFinishedMemberIsNotReplaced(t *testing.T) {
	for what, ends := range map[string]func(*simulation, round.Pod){
		"its pod is there": func(r *simulation, pod round.Pod) { r.group.AddSucceeded(pod, r.now) },
		"its pod is gone":  func(r *simulation, pod round.Pod) { r.group.AddSucceeded(pod, r.now); r.removePod(0) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newSimulation(t, 1, 4)
			r.group.SetTarget(3, r.now)
			r.start(0, 1, 2)
			r.settle()
			a := r.pods[name(0)]
			a.request.State = protocol.Done
			r.send(a)
			ends(r, a.pod)
			r.group.SetTarget(4, r.now)
			r.removePod(1)
			r.want("0: ")
			r.start(1)
			r.want("2: 0=1/2 1=2/2")
		})
	}
}

// TestRoundThatEndsBeforeItsMembersReportIt: two pods may be deleted shortly one after the other. Members that run by
// then must not continue as members of a round of three.
func TestRoundThatEndsBeforeItsMembersReportIt(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.slow = true
	r.start(0, 1, 2)
	for _, i := range []int{0, 1} {
		r.obey(r.pods[name(i)], i) // the agent runs, and has not reported that yet
	}
	r.removePod(2)
	r.settle()
	for i := range 2 {
		if a := r.pods[name(i)]; a.request.State != protocol.Running || a.request.Size != 2 || a.overs == 0 {
			t.Errorf("%s runs in a round of %d, after %d answers that its round is over, want 2 and at least one", a.pod.Name,
				a.request.Size, a.overs)
		}
	}
}

func TestLatecomersJoinTogether(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1)
	r.want("1: 0=0/2 1=1/2")
	r.addPods(2, 3)
	r.wait(nil, 2)
	r.want("1: 0=0/2 1=1/2")
	r.wait(nil, 3)
	r.want("2: 0=0/4 1=1/4 2=2/4 3=3/4")
	if n := r.pods[name(0)].overs; n != 1 {
		t.Errorf("a member was stopped %d times for two new pods, want once", n)
	}
}

func TestLatecomerJoinsWithoutAPodThatNeverAsks(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1)
	r.want("1: 0=0/2 1=1/2")
	r.addPods(2, 3)
	r.wait(nil, 2)
	r.settle()
	r.pass(timeouts.Gather)
	r.want("2: 0=0/3 1=1/3 2=2/3")
}

func TestFailureStartsANewRound(t *testing.T) {
	r := newSimulation(t, 3, 3)
	r.start(0, 1, 2)
	r.settle()
	r.wait(&protocol.Failure{ExitCode: 3}, 1)
	r.want("2: 0=0/3 1=1/3 2=2/3")
}

func TestRestartedAgentLeavesTheRound(t *testing.T) {
	r := newSimulation(t, 2, 2)
	r.start(0, 1)
	r.settle()
	r.pods[name(1)].request.Round = 0 // its container was restarted
	r.wait(nil, 1)
	r.want("2: 0=0/2 1=1/2")
}

func TestLostAnswerIsRepeated(t *testing.T) {
	r := newSimulation(t, 2, 2)
	r.start(0, 1)
	a := r.pods[name(0)]
	r.group.Disconnected(a.pod.UID, r.now)
	r.send(a)
	first, _ := r.group.Answer(a.pod.UID)
	r.send(a)
	again, _ := r.group.Answer(a.pod.UID)
	if first.Round == nil || again.Round == nil || *first.Round != *again.Round {
		t.Errorf("answers differ: %+v and %+v", first.Round, again.Round)
	}
}

func TestDisconnectedMemberKeepsRunning(t *testing.T) {
	r := newSimulation(t, 2, 3)
	r.start(0, 1, 2)
	r.settle()
	r.pods[name(1)].disconnected = true
	r.pass(time.Hour)
	r.want("1: 0=0/3 2=2/3")
	r.removePod(0) // it joins the next round only once it is connected again
	r.settle()
	if got := r.membership(); got != "0: " {
		t.Errorf("members before the patience is over = %q, want none", got)
	}
	r.pods[name(1)].disconnected = false
	r.pass(0)
	r.want("2: 0=1/2 1=2/2")
}

func TestFinishedMembersAreNotWaitedFor(t *testing.T) {
	r := newSimulation(t, 3, 3)
	r.start(0, 1, 2)
	r.settle()
	a := r.pods[name(0)]
	a.request.State = protocol.Done
	r.send(a)
	r.want("1: 1=1/3 2=2/3")
	r.wait(&protocol.Failure{ExitCode: 1}, 2)
	r.want("2: 0=1/2 1=2/2")
}

func TestRoundSurvivesAnOperatorRestart(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1, 2)
	r.settle()
	r.restart(2, 4)
	r.pass(time.Hour)
	r.want("1: 0=0/3 1=1/3 2=2/3")
	for i := range 3 {
		if n := r.pods[name(i)].overs; n != 0 {
			t.Errorf("worker %d was stopped %d times, want never", i, n)
		}
	}
	r.removePod(2)
	r.want("2: 0=0/2 1=1/2")
}

func TestMemberLostWhileTheOperatorIsDownEndsTheRound(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1, 2)
	r.settle()
	delete(r.pods, name(1))
	r.restart(2, 4)
	r.want("2: 0=0/2 1=2/2")
}

func TestOperatorRestartWhileARoundBegins(t *testing.T) {
	r := newSimulation(t, 2, 3)
	r.start(0, 1, 2)
	r.settle()
	r.removePod(2)
	r.obey(r.pods[name(0)], 0) // the other pod has no answer yet
	r.restart(2, 3)
	r.want("2: 0=0/2 1=1/2")
}

// TestRoundsWithEqualNumberAndMasterAreDistinguished: an operator that restarted and gets no request from a running
// member numbers from 1 again, with the same rank 0. A disconnected member of the earlier round 1 has another part than
// the members of the new round 1.
func TestRoundsWithEqualNumberAndMasterAreDistinguished(t *testing.T) {
	for where, comesBack := range map[string]func(*simulation){
		"to that operator":               func(r *simulation) { r.send(r.pods[name(1)]) },
		"to the next, before the others": func(r *simulation) { r.restartInOrder(2, 3, []string{name(1), name(0), name(2)}) },
		"to the next, after the others":  func(r *simulation) { r.restartInOrder(2, 3, []string{name(0), name(2), name(1)}) },
	} {
		t.Run(where, func(t *testing.T) {
			r := newSimulation(t, 2, 3)
			r.start(0, 1, 2)
			cut, restarted := r.pods[name(1)], r.pods[name(2)]
			r.obey(cut, 1) // the others have no answer yet
			cut.disconnected = true
			restarted.request = protocol.Request{} // its container was restarted
			r.wait(nil, 2)
			r.restart(2, 3)
			r.pass(timeouts.Gather)
			r.want("1: 0=0/2 1=2/2")
			if first := r.pods[name(0)].request; first.Master != cut.request.Master {
				t.Fatalf("the rounds have the masters %s and %s, want the same", cut.request.Master, first.Master)
			}
			cut.disconnected = false
			comesBack(r)
			r.want("2: 0=0/3 1=1/3 2=2/3")
		})
	}
}

// TestAgentsWithoutRoundID: agents from before rounds had IDs keep their rounds too.
func TestAgentsWithoutRoundID(t *testing.T) {
	r := newSimulation(t, 2, 4)
	r.start(0, 1, 2)
	r.settle()
	r.pods[name(0)].request.ID, r.pods[name(1)].request.ID = "", ""
	for range 2 { // also if only one agent with an ID has reported
		r.restart(2, 4)
		r.pass(time.Hour)
		r.want("1: 0=0/3 1=1/3 2=2/3")
	}
	r.removePod(2)
	r.want("2: 0=0/2 1=1/2")
}

func TestNewcomersDoNotRepeatFinishedWork(t *testing.T) {
	r := newSimulation(t, 1, 4)
	r.start(0, 1)
	r.settle()
	ends := func(i int) {
		a := r.pods[name(i)]
		a.request.State = protocol.Done
		r.send(a)
	}
	ends(0)
	r.start(2) // the job has just grown
	r.want("1: 1=1/2")
	r.wait(&protocol.Failure{ExitCode: 1}, 1)
	r.want("2: 0=1/1") // the newcomer neither joins nor is waited for
	r.removePod(1)
	r.pass(time.Hour)
	r.settle()
	r.want("3: 0=2/1") // it replaces a member that was lost
	r.start(4)         // the job has grown once more
	r.pass(time.Hour)
	if answer, says := r.group.Answer(r.pods[name(4)].pod.UID); says {
		t.Errorf("answer to a newcomer while a member runs = %+v, want none", answer)
	}
	before := r.group.Version()
	ends(2)
	if r.group.Version() == before {
		t.Error("the version is the same after the last member has ended, so that held requests are not answered")
	}
	r.start(3)
	r.pass(time.Hour)
	r.settle()
	if got := r.membership(); got != "0: " {
		t.Errorf("members after all have ended = %q, want none", got)
	}
	r.group.AddSucceeded(r.pods[name(2)].pod, r.now)
	for _, i := range []int{3, 4} {
		if answer, _ := r.group.Answer(r.pods[name(i)].pod.UID); answer.Finished == "" {
			t.Errorf("answer to newcomer %d after all have ended = %+v, want that the work is finished", i, answer)
		}
	}
}

// TestMemberThatSucceededBeforeTheOperatorStartedCounts: the other members of its round go on, and a later round, for
// which fewer than the minimum are left, begins.
func TestMemberThatSucceededBeforeTheOperatorStartedCounts(t *testing.T) {
	r := newSimulation(t, 3, 3)
	r.start(0, 1, 2)
	r.settle()
	succeeded := r.pods[name(0)].pod
	r.group.AddSucceeded(succeeded, r.now)
	delete(r.pods, name(0))
	for _, first := range []bool{true, false} {
		r.now = r.now.Add(time.Millisecond)
		r.group = round.New(3, 3, timeouts, r.now)
		if first {
			r.group.AddSucceeded(succeeded, r.now)
		}
		for _, i := range []int{1, 2} {
			r.group.AddPod(r.pods[name(i)].pod, r.now)
		}
		if !first {
			r.group.AddSucceeded(succeeded, r.now)
		}
		r.send(r.pods[name(1)])
		r.send(r.pods[name(2)])
		r.want("1: 1=1/3 2=2/3")
	}
	r.wait(&protocol.Failure{ExitCode: 1}, 1)
	r.want("2: 0=1/2 1=2/2")
	r.removePod(1)
	r.start(1)
	r.want("3: 0=1/2 1=2/2")
	for _, i := range []int{1, 2} {
		r.group.AddSucceeded(r.pods[name(i)].pod, r.now)
		delete(r.pods, name(i))
	}
	r.start(3)
	if answer, _ := r.group.Answer(r.pods[name(3)].pod.UID); answer.Finished == "" {
		t.Errorf("answer to a pod that comes after the work = %+v, want that it is finished", answer)
	}
}

// TestSucceededPodSaysNothing: a request that its agent sent before may arrive late.
func TestSucceededPodSaysNothing(t *testing.T) {
	r := newSimulation(t, 1, 1)
	r.start(0)
	r.settle()
	late := r.pods[name(0)]
	r.group.AddSucceeded(late.pod, r.now)
	r.send(late)
	r.start(1)
	if answer, _ := r.group.Answer(r.pods[name(1)].pod.UID); answer.Finished == "" {
		t.Errorf("answer to a pod that comes after the work = %+v, want that it is finished", answer)
	}
}

// TestEventsOfALargeJobAreCheap: each change of the version wakes every agent of the job, so that one for each event of
// each pod would make a job of 10,000 pods cost minutes.
func TestEventsOfALargeJobAreCheap(t *testing.T) {
	const size = 3000
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	group := round.New(size, size, timeouts, now)
	each := func(what string, changes uint64, event func(uid string)) {
		before := group.Version()
		for i := range size {
			event(name(i))
		}
		if got := group.Version() - before; got != changes {
			t.Errorf("%s: the version changed %d times, want %d", what, got, changes)
		}
	}
	each("pods come", 0, func(uid string) { group.AddPod(round.Pod{UID: uid, Name: uid}, now) })
	each("agents wait", 1, func(uid string) {
		group.Observe(uid, protocol.Request{State: protocol.Waiting, Join: uid, Address: uid, Port: 1}, now)
	})
	each("they run", 0, func(uid string) {
		answer, _ := group.Answer(uid)
		group.Observe(uid, protocol.Request{
			State: protocol.Running, Join: uid, Round: 1, Rank: answer.Round.Rank, Size: size, Master: answer.Round.Master(),
			ID: answer.Round.ID,
		}, now)
	})
	each("they end", 1, func(uid string) {
		group.Observe(uid, protocol.Request{State: protocol.Done, Join: uid, Round: 1}, now)
	})
}

// TestReplacementOfAMemberThatSucceededIsFinished: the pod of a member that has succeeded is lost, with its node for
// instance, and its job creates another. The work of the member is done, and so is that of its replacement.
func TestReplacementOfAMemberThatSucceededIsFinished(t *testing.T) {
	r := newSimulation(t, 2, 2)
	r.start(0, 1)
	r.settle()
	r.group.AddSucceeded(r.pods[name(0)].pod, r.now)
	r.start(0)
	r.pass(time.Hour)
	r.want("1: 1=1/2")
	r.group.AddSucceeded(r.pods[name(1)].pod, r.now)
	if answer, _ := r.group.Answer(r.pods[name(0)].pod.UID); answer.Finished == "" {
		t.Errorf("answer to the replacement = %+v, want that the work is finished", answer)
	}
}
