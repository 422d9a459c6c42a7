package round

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Timeouts are how long a group waits for pods whose agents have not asked.
type Timeouts struct {
	// Gather bounds how long a round that has its minimum waits for the remaining pods, and how long pods wait for
	// others before they join a running round.
	Gather time.Duration
	// Presence is how long a waiting agent is considered present after its last request.
	Presence time.Duration
}

// Pod is a pod of the group: it has not terminated, or has succeeded.
type Pod struct {
	UID  string
	Name string
	// Index orders the pods of a group: ranks follow it, then the name.
	Index []int
}

// Group is the pods of one job that runs in rounds. It is not safe for concurrent use.
type Group struct {
	timeouts     Timeouts
	fewest, most int
	pods         map[string]*member
	// states counts the pods by the state that their agents have reported; pods that have succeeded are Done.
	states map[protocol.State]int
	// target is how many pods the job is to have now, succeeded pods included; 0 if this is not known. awaiting is since
	// when missing pods are waited for: the last round has ended, a member of it was lost, or the job was given more pods.
	target   int
	awaiting time.Time
	// due is no later than the next deadline; zero if there is none.
	due time.Time

	// number is that of the current round, or of the last one.
	number int64
	// running is set while a round runs; otherwise one is being gathered, since gathering.
	running   bool
	gathering time.Time
	// size is the number of members of the round. After an operator restart, not all of them may have sent a request
	// yet.
	size int
	// adopted is set if an earlier operator began the round; its members are known only once they have sent a request.
	adopted bool
	// whyEnded is why the last round ended.
	whyEnded string
	version  uint64
	// done counts members that succeeded and whose pods are gone.
	done int
	// participants is how many pods had a part in the work when the round began: its members, and the pods that had
	// succeeded by then. For an adopted round it is the least number that is known of.
	participants int
	// first is the answer to the member with rank 0, if this operator began the round.
	first protocol.Round
	// master and id tell the round apart from others with its number. id is empty while only agents that send no ID
	// have reported an adopted round.
	master, id string
}

// member is a pod with the last request of its agent.
type member struct {
	Pod
	// firstSeen is when the pod was added.
	firstSeen time.Time
	request   protocol.Request
	// lastSeen is when the agent's last request arrived; zero if it has sent none, or has disconnected.
	lastSeen time.Time
	// succeeded is set once the pod has; then only old requests of its agent may still arrive.
	succeeded bool
	// round is the number of the current round that the member is in; 0 if none.
	round int64
	rank  int
	join  string
	// answered is the Join of the wait that was answered with a round: the agent may have begun that round, and no
	// longer counts as waiting. A new request of the agent clears it, as that shows that the answer did not arrive.
	answered string
}

// New returns a group that gathers its first round. A round has between fewest and most members.
func New(fewest, most int, timeouts Timeouts, now time.Time) *Group {
	g := &Group{timeouts: timeouts, fewest: fewest, most: most, pods: map[string]*member{},
		states: map[protocol.State]int{}}
	g.gather(now)
	return g
}

// Resize changes the bounds of future rounds.
func (g *Group) Resize(fewest, most int, now time.Time) {
	g.fewest, g.most = fewest, most
	g.settle(now)
}

// SetTarget sets how many pods the job is to have now, succeeded pods included. A round that is gathered waits for pods
// that do not exist yet as long as for pods that do: the pod of a lost member is about to be replaced.
func (g *Group) SetTarget(pods int, now time.Time) {
	if pods > g.target {
		g.await(now)
	}
	g.target = pods
	g.settle(now)
}

// Version returns a number that changes whenever the answers to other pods than that of a call may have changed: in a
// large job each change wakes thousands of requests.
func (g *Group) Version() uint64 { return g.version }

// Knows reports whether the pod is in the group.
func (g *Group) Knows(uid string) bool { return g.pods[uid] != nil }

// Empty reports whether the group has no pods.
func (g *Group) Empty() bool { return len(g.pods) == 0 }

// AddPod adds a pod that has not terminated, or updates one that is in the group.
func (g *Group) AddPod(pod Pod, now time.Time) {
	g.add(pod, now)
	g.settle(now)
}

// AddSucceeded records that a pod has succeeded. It need not be in the group before: it may have succeeded while an
// earlier operator led, and counts all the same.
func (g *Group) AddSucceeded(pod Pod, now time.Time) {
	m := g.add(pod, now)
	m.succeeded = true
	g.noteRequest(m, protocol.Request{State: protocol.Done})
	g.notifyNewcomers()
	g.settle(now)
}

func (g *Group) add(pod Pod, now time.Time) *member {
	m, known := g.pods[pod.UID]
	if known {
		m.Pod = pod
		return m
	}
	m = &member{Pod: pod, firstSeen: now}
	g.pods[pod.UID] = m
	g.states[""]++
	g.note(now.Add(g.timeouts.Gather))
	return m
}

// noteRequest replaces the last request of the pod's agent.
func (g *Group) noteRequest(m *member, request protocol.Request) {
	g.states[m.request.State]--
	g.states[request.State]++
	m.request = request
}

// RemovePod removes a pod that has failed, is being deleted or no longer exists. If it had succeeded before, or its
// agent had reported so, that still counts.
func (g *Group) RemovePod(uid string, now time.Time) {
	m, known := g.pods[uid]
	if !known {
		return
	}
	delete(g.pods, uid)
	g.states[m.request.State]--
	switch {
	case m.request.State == protocol.Done:
		g.done++
	case g.isMember(m):
		g.end("pod "+m.Name+" is gone", now)
	case !g.running && m.request.Round > 0 && m.request.Round == g.number: // the others may have noticed before
		g.await(now)
	}
	g.settle(now)
}

// Observe records a request of the agent in a pod. It returns false if the pod is not in the group.
func (g *Group) Observe(uid string, request protocol.Request, now time.Time) (known bool) {
	m, known := g.pods[uid]
	if !known || m.succeeded {
		return known
	}
	g.noteRequest(m, request)
	m.lastSeen, m.answered = now, ""
	switch request.State {
	case protocol.Running:
		g.observeRunning(m)
	case protocol.Waiting:
		g.note(now.Add(g.timeouts.Presence))
		g.observeWaiting(m, now)
	case protocol.Done:
		g.notifyNewcomers()
	}
	g.settle(now)
	return true
}

// Disconnected records that the agent's request was broken off. It matters only for waiting agents: a round must not
// begin with an agent that is not there.
func (g *Group) Disconnected(uid string, now time.Time) {
	if m, known := g.pods[uid]; known && m.request.State == protocol.Waiting {
		m.lastSeen = time.Time{}
	}
	g.settle(now)
}

// Tick advances the group to the time now; call it when Due says so.
func (g *Group) Tick(now time.Time) { g.settle(now) }

// Answer returns what to answer the pod's agent now; false if there is nothing to answer yet.
func (g *Group) Answer(uid string) (protocol.Response, bool) {
	m, known := g.pods[uid]
	if !known {
		return protocol.Response{}, false
	}
	switch m.request.State {
	case protocol.Done:
		return protocol.Response{}, true
	case protocol.Waiting:
		if g.isMember(m) && m.join == m.request.Join {
			part := g.first
			part.Rank, m.answered = m.rank, m.join
			return protocol.Response{Round: &part}, true
		}
		if g.workIsDone() && g.excluded()[m] {
			return protocol.Response{Finished: "all members of the last round have succeeded"}, true
		}
	case protocol.Running:
		if !g.runsCurrent(m) {
			return protocol.Response{Over: cmp.Or(g.whyEnded, "the round is over")}, true
		}
	}
	return protocol.Response{}, false
}

// isMember reports whether the pod is in the running round.
func (g *Group) isMember(m *member) bool { return g.running && m.round == g.number }

// runsCurrent reports whether the member's command is that of the running round. An agent that was given a round which
// ended before it reported that it runs may already be a member of the next round, but its command is not.
func (g *Group) runsCurrent(m *member) bool {
	return g.isMember(m) && m.request.Round == g.number && g.isCurrent(m.request)
}

// isCurrent reports whether a request whose round has the current number is about the current round. Number and master
// alone do not tell: an operator that restarted may number from 1 again, with a rank 0 that missed the earlier round
// and still waits at the same address and port.
func (g *Group) isCurrent(request protocol.Request) bool {
	return request.Master == g.master && (request.ID == g.id || request.ID == "" || g.id == "")
}

// observeRunning counts a running agent as a member if it runs the current round, or adopts its round if that began
// before this operator started.
func (g *Group) observeRunning(m *member) {
	request := m.request
	switch {
	case request.Round < g.number, request.Round == g.number && !g.running && g.whyEnded != "":
		return // Answer tells it that this round is over
	case request.Round == g.number && g.running && !g.isCurrent(request):
		return // another round with the same number
	case request.Round > g.number || !g.running:
		for _, other := range g.pods {
			other.round = 0
		}
		g.number, g.running, g.size, g.whyEnded = request.Round, true, request.Size, ""
		g.adopted, g.master, g.id = true, request.Master, request.ID
		g.participants = request.Size
		g.version++
	case g.id == "" && request.ID != "":
		g.id = request.ID
		g.version++
	}
	m.round, m.rank, m.join = request.Round, request.Rank, request.Join
	if g.adopted {
		g.participants = max(g.participants, g.succeeded()+g.inRound())
	}
}

// observeWaiting handles the request of a waiting agent: it may be a member that has not received its answer yet, or
// one that has left the round.
func (g *Group) observeWaiting(m *member, now time.Time) {
	request := m.request
	switch {
	case g.running && request.Round == g.number && m.join != request.Join:
		g.end(restartReason(m), now)
	case g.isMember(m) && m.join != request.Join:
		g.end(restartReason(m), now)
	case request.Round > g.number:
		// The member has left a round that an earlier operator began.
		if g.running {
			g.end(restartReason(m), now)
		}
		g.number = request.Round
		g.whyEnded = cmp.Or(g.whyEnded, restartReason(m))
	}
}

func restartReason(m *member) string {
	failure := m.request.Failure
	switch {
	case failure == nil:
		return "pod " + m.Name + " started again"
	case failure.Infrastructure:
		return fmt.Sprintf("the command in pod %s was interrupted (%s)", m.Name, describe(failure))
	default:
		return fmt.Sprintf("the command in pod %s failed (%s)", m.Name, describe(failure))
	}
}

func describe(f *protocol.Failure) string {
	if f.Message != "" {
		return f.Message
	}
	return fmt.Sprintf("exit code %d", f.ExitCode)
}

// end ends the running round, if there is one.
func (g *Group) end(why string, now time.Time) {
	if !g.running {
		return
	}
	g.running, g.whyEnded = false, why
	g.version++
	g.adopted = false
	for _, m := range g.pods {
		m.round = 0
	}
	g.gather(now)
}

// gather begins to gather the next round.
func (g *Group) gather(now time.Time) {
	g.gathering = now
	g.await(now)
}

// await begins to wait for pods that do not exist.
func (g *Group) await(now time.Time) {
	g.awaiting = now
	g.note(now.Add(g.timeouts.Gather))
}

// notifyNewcomers makes pods that came too late ask for their answers, if all work is done.
func (g *Group) notifyNewcomers() {
	if g.workIsDone() {
		g.version++
	}
}

// settle ends the round if it should grow or has lost a member, and begins the next if it can.
func (g *Group) settle(now time.Time) {
	if g.running && g.shouldGrow(now) {
		awaiting := g.awaiting
		g.end(fmt.Sprintf("%d more waiting to join", len(g.waiting(now))), now)
		g.awaiting = awaiting // growing brings no pods that are missing: they have been waited for
	}
	if g.running && g.lostMember() {
		g.end("a member is gone", now)
	}
	if !g.running && g.canBegin(now) {
		g.begin(g.waiting(now), now)
	}
}

// inOrder compares members by the order of their ranks.
func inOrder(a, b *member) int {
	return cmp.Or(slices.Compare(a.Index, b.Index), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

// begin starts the next round with the members given; if there are more than max, with the first of them in rank order.
func (g *Group) begin(members []*member, now time.Time) {
	slices.SortFunc(members, inOrder)
	members = members[:min(len(members), g.most)]
	g.participants = len(members) + g.succeeded()
	g.number++
	g.version++
	g.running, g.size, g.whyEnded = true, len(members), ""
	g.first = protocol.Round{
		Number: g.number, ID: fmt.Sprint(g.number, "-", strconv.FormatInt(now.UnixNano(), 36)), Size: g.size,
		MasterAddress: members[0].request.Address, MasterPort: members[0].request.Port, Min: g.fewest, Max: g.most,
	}
	g.master, g.id = g.first.Master(), g.first.ID
	for rank, m := range members {
		m.round, m.rank, m.join = g.number, rank, m.request.Join
	}
}
