// Package protocol is the protocol between the agent in a pod and the operator. It imports only the standard library,
// so that the agent stays small.
//
// An agent sends a request, and the operator answers when there is something to do, or, after Hold, that there is
// nothing new. An agent that gets no answer goes on as it is and asks again, so an operator that is down stops no job.
package protocol

import (
	"net"
	"strconv"
	"time"
)

const (
	// Path is the path of the only request: a POST of a Request, answered with a Response.
	Path = "/v1/rendezvous"
	// ReportPath is the path to which training code posts its progress, as a pattern of http.ServeMux: the path of
	// Trainer's protocol, for jobs of any kind.
	ReportPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"
	// Audience is the audience of the tokens with which agents prove which pod they run in.
	Audience = "rendezvous.muster.dev"
	// ServerName is the name in the operator's certificate, whatever address agents connect to.
	ServerName = "rendezvous.muster.dev"
	// Hold is how long the operator holds a request for which there is nothing new.
	Hold = 50 * time.Second
	// DefaultMasterPort is PyTorch's default MASTER_PORT, used where no other port is known.
	DefaultMasterPort = 29500
	// MaxRequestBytes is the largest request body that the operator reads.
	MaxRequestBytes = 16 << 10
	// MaxHeaderBytes is about the largest header that the operator reads. A token has one to two thousand bytes.
	MaxHeaderBytes = 16 << 10
)

// State is what an agent is doing.
type State string

const (
	// Waiting agents run nothing and want to be in the next round.
	Waiting State = "Waiting"
	// Running agents run the command of a round.
	Running State = "Running"
	// Done agents have run their command to a successful end; no round waits for them any more.
	Done State = "Done"
)

// Request is what an agent sends.
type Request struct {
	State State `json:"state"`
	// Join identifies one wait for a round: the agent draws a new value each time it begins to wait, and keeps it while
	// it runs the round that it was then given.
	Join string `json:"join"`
	// Round is the number of the round that the agent runs, or ran last; 0 if none.
	Round int64 `json:"round,omitempty"`
	// Rank and Size are the agent's rank in the round that it runs, and the size of that round.
	Rank int `json:"rank,omitempty"`
	Size int `json:"size,omitempty"`
	// Master is the host:port of that round's member with rank 0.
	Master string `json:"master,omitempty"`
	// ID is the ID of that round. Agents older than this field leave it empty: their rounds are told apart by number
	// and master.
	ID string `json:"id,omitempty"`
	// Address is where other members reach the pod, and Port a port that is free there, to be used if the agent gets
	// rank 0.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// Failure says why the agent waits again; nil if it waits for the first time, or was told to.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure describes a command that did not succeed.
type Failure struct {
	ExitCode int `json:"exitCode"`
	// Infrastructure reports that the failure was not the program's own fault.
	Infrastructure bool   `json:"infrastructure,omitempty"`
	Message        string `json:"message,omitempty"`
}

// Response is the operator's answer. An empty Response means that there is nothing new.
type Response struct {
	// Round is the round that a waiting agent is to run.
	Round *Round `json:"round,omitempty"`
	// Over tells a running agent to stop its command and wait for the next round. It holds the reason.
	Over string `json:"over,omitempty"`
	// Refused tells the agent to give up: its pod will never get a round. It holds the reason.
	Refused string `json:"refused,omitempty"`
	// Finished tells a waiting agent to end successfully, without having run its command: the others have done
	// all of the work. It holds the reason. Agents older than this field wait on.
	Finished string `json:"finished,omitempty"`
}

// Round is one agent's part in a round.
type Round struct {
	// Number increases with each round of a job, from 1.
	Number int64 `json:"number"`
	// ID tells the round apart from all others of the job, even from one with the same number and master: an operator that
	// restarts may begin a round with the same number and master. It has no other meaning.
	ID string `json:"id,omitempty"`
	// Rank is the agent's rank among the Size members, from 0.
	Rank int `json:"rank"`
	Size int `json:"size"`
	// MasterAddress and MasterPort are the address and port of the member with rank 0.
	MasterAddress string `json:"masterAddress"`
	MasterPort    int    `json:"masterPort"`
	// Min and Max bound the size of the job's rounds.
	Min int `json:"min"`
	Max int `json:"max"`
}

// Master returns the host:port of the round's member with rank 0, in the form that requests use.
func (r Round) Master() string {
	return net.JoinHostPort(r.MasterAddress, strconv.Itoa(r.MasterPort))
}
