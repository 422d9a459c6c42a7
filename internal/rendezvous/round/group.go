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

// Patience is how long a group waits for pods that its agents have not been heard of.
type Timeouts struct {
	// Gather bounds the wait for the rest once a round has its minimum, and the wait of those
	// who would make a round larger.
	Gather time.Duration
	// Presence is how long a waiting agent is taken to be there after it was last heard.
	Presence time.Duration
}

// Pod is one that lives and belongs to the group.
type Pod struct {
	UID  string
	Name string
	// Index orders the pods of a group: by it, and then by name, they get their ranks.
	Index []int
}

// Group is all pods of a job that are to run in rounds. It is not safe for use by
// several goroutines.
type Group struct {
	timeouts Timeouts
	min, max int
	pods     map[string]*member

	// number is of the present round, or of the last one.
	number int64
	// running says that the round goes on; else one is being gathered, since gathering.
	running   bool
	gathering time.Time
	// size is how many members the round has; after a start of the operator not all of
	// them may have been heard yet.
	size int
	// adopted says that another operator began the round: its members are known as far as
	// they have been heard.
	adopted bool
	// over says why the last round is over.
	over    string
	version uint64
	// done counts members that ended well and whose pods are gone.
	done int
	// whole is how many had a part in the work when the round began: its members, and those
	// who had ended well by then.
	participants int
	// first is the part in the round of the member with rank 0, if this operator began it.
	first protocol.Round
	// master and id tell the round from others of its number. id is empty as long as of a round that
	// another operator began only agents were heard that say none.
	master, id string
}

// member is a pod with what its agent has said.
type member struct {
	Pod
	// born is when the pod was heard of first.
	firstSeen time.Time
	request   protocol.Request
	// heard is when the agent was heard last; zero for never, or if it is known to have gone.
	lastSeen time.Time
	// round is the one that it is in, of those that are not over; 0 for none.
	round int64
	rank  int
	join  string
	// told is the wait to which a part in a round was answered: it may have begun that, and waits
	// no longer. It is empty again if the agent asks once more, since then it has not heard.
	answered string
}

// New makes a group that begins to gather. A round has at least min members and at most max.
func New(min, max int, timeouts Timeouts, now time.Time) *Group {
	return &Group{timeouts: timeouts, min: min, max: max, pods: map[string]*member{}, gathering: now}
}

// Resize changes the bounds of the rounds to come.
func (g *Group) Resize(min, max int, now time.Time) {
	g.min, g.max = min, max
	g.settle(now)
}

// Version changes whenever an answer may have become another.
func (g *Group) Version() uint64 { return g.version }

// Knows reports whether the pod lives and belongs to the group.
func (g *Group) Knows(uid string) bool { return g.pods[uid] != nil }

// Empty reports whether the group has no pods.
func (g *Group) Empty() bool { return len(g.pods) == 0 }

// PodLives tells of a pod that is there, be it known or not.
func (g *Group) AddPod(pod Pod, now time.Time) {
	if m, known := g.pods[pod.UID]; known {
		m.Pod = pod
	} else {
		g.pods[pod.UID] = &member{Pod: pod, firstSeen: now}
		g.version++
	}
	g.settle(now)
}

// PodGone tells that a pod has ended, is being deleted or is not there any more.
func (g *Group) RemovePod(uid string, succeeded bool, now time.Time) {
	m, known := g.pods[uid]
	if !known {
		return
	}
	delete(g.pods, uid)
	g.version++
	switch {
	case succeeded || m.request.State == protocol.Done:
		g.done++
	case g.isMember(m):
		g.end("pod "+m.Name+" is gone", now)
	}
	g.settle(now)
}

// Hear takes what the agent in a pod says; false is that the group does not know the pod.
func (g *Group) Observe(uid string, request protocol.Request, now time.Time) (known bool) {
	m, known := g.pods[uid]
	if !known {
		return false
	}
	m.request, m.lastSeen, m.answered = request, now, ""
	switch request.State {
	case protocol.Running:
		g.observeRunning(m)
	case protocol.Waiting:
		g.observeWaiting(m, now)
	}
	g.settle(now)
	return true
}

// Silent tells that the agent's request has broken off. It matters for those who wait:
// nobody begins a round with somebody who is not there.
func (g *Group) Disconnected(uid string, now time.Time) {
	if m, known := g.pods[uid]; known && m.request.State == protocol.Waiting {
		m.lastSeen = time.Time{}
	}
	g.settle(now)
}

// Tick tells the time, when Due says so.
func (g *Group) Tick(now time.Time) { g.settle(now) }

// Answer is what to tell the agent in the pod now; false is nothing yet.
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
	case protocol.Running:
		if !g.runsCurrent(m) {
			return protocol.Response{Over: cmp.Or(g.over, "the round is over")}, true
		}
	}
	return protocol.Response{}, false
}

// in reports whether the member is in the round that goes on.
func (g *Group) isMember(m *member) bool { return g.running && m.round == g.number }

// runs reports whether the member's command is that of the round that goes on. One that was told
// its part in a round, and had not said so when that was over, is in the next one for all
// that was heard of it; its command is not.
func (g *Group) runsCurrent(m *member) bool {
	return g.isMember(m) && m.request.Round == g.number && g.isCurrent(m.request)
}

// same reports whether a round of the present number is the present one. The number and the
// master do not tell: an operator that was started anew may begin again with 1, and with the
// first member of another round that was told nothing of it, and waits where it did.
func (g *Group) isCurrent(request protocol.Request) bool {
	return request.Master == g.master && (request.ID == g.id || request.ID == "" || g.id == "")
}

// adopt counts an agent that runs a round in, if it is the present one, or one that
// began before this operator did.
func (g *Group) observeRunning(m *member) {
	request := m.request
	switch {
	case request.Round < g.number, request.Round == g.number && !g.running && g.over != "":
		return // it is told that this is over
	case request.Round == g.number && g.running && !g.isCurrent(request):
		return // of another round that had this number
	case request.Round > g.number || !g.running:
		for _, other := range g.pods {
			other.round = 0
		}
		g.number, g.running, g.size, g.over = request.Round, true, request.Size, ""
		g.adopted, g.master, g.id = true, request.Master, request.ID
		g.participants = request.Size + g.finished()
	}
	g.id = cmp.Or(g.id, request.ID)
	m.round, m.rank, m.join = request.Round, request.Rank, request.Join
	g.version++
}

// rejoin looks at an agent that waits: it may be in the round and not know it yet, or
// have left it.
func (g *Group) observeWaiting(m *member, now time.Time) {
	request := m.request
	switch {
	case g.running && request.Round == g.number && m.join != request.Join:
		g.end(restartReason(m), now)
	case g.isMember(m) && m.join != request.Join:
		g.end(restartReason(m), now)
	case request.Round > g.number:
		// Of a round that another operator began, and that this member has left.
		if g.running {
			g.end(restartReason(m), now)
		}
		g.number = request.Round
		g.over = cmp.Or(g.over, restartReason(m))
	}
}

func restartReason(m *member) string {
	failure := m.request.Failure
	switch {
	case failure == nil:
		return "pod " + m.Name + " begins anew"
	case failure.Infrastructure:
		return fmt.Sprintf("the command in pod %s lost the others (%s)", m.Name, describe(failure))
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

// end ends the round.
func (g *Group) end(why string, now time.Time) {
	if !g.running {
		return
	}
	g.running, g.over, g.gathering = false, why, now
	g.version++
	g.adopted = false
	for _, m := range g.pods {
		m.round = 0
	}
}

// settle ends the round if others are to join it, and begins the next if it can.
func (g *Group) settle(now time.Time) {
	if g.running && g.shouldGrow(now) {
		g.end(fmt.Sprintf("%d more wait to join", len(g.waiting(now))), now)
	}
	if g.running && g.lostMember() {
		g.end("a member is gone", now)
	}
	if !g.running && g.canBegin(now) {
		g.begin(g.waiting(now), now)
	}
}

// inOrder compares members by the order in which they get their ranks.
func inOrder(a, b *member) int {
	return cmp.Or(slices.Compare(a.Index, b.Index), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

// begin starts the next round with those, the first in order if they are too many.
func (g *Group) begin(members []*member, now time.Time) {
	slices.SortFunc(members, inOrder)
	members = members[:min(len(members), g.max)]
	g.participants = len(members) + g.finished()
	g.number++
	g.version++
	g.running, g.size, g.over = true, len(members), ""
	g.first = protocol.Round{
		Number: g.number, ID: fmt.Sprint(g.number, "-", strconv.FormatInt(now.UnixNano(), 36)), Size: g.size,
		MasterAddress: members[0].request.Address, MasterPort: members[0].request.Port, Min: g.min, Max: g.max,
	}
	g.master, g.id = g.first.Master(), g.first.ID
	for rank, m := range members {
		m.round, m.rank, m.join = g.number, rank, m.request.Join
	}
}
