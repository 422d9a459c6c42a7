package protocol

import (
	"encoding/json"
	"testing"
)

// TestWireFormatIsStable: pods keep the agent with which they were created, and a newer operator takes over while they
// run. So a field never changes its name or meaning; new data gets new fields.
func TestWireFormatIsStable(t *testing.T) {
	for what, test := range map[string]struct {
		says any
		want string
	}{
		"first wait": {Request{State: Waiting, Join: "AB", Address: "10.0.0.7", Port: 29500},
			`{"state":"Waiting","join":"AB","address":"10.0.0.7","port":29500}`},
		"running": {Request{State: Running, Join: "AB", Round: 3, Rank: 1, Size: 4, Master: "10.0.0.7:29500", ID: "3-x",
			Address: "10.0.0.8", Port: 29501},
			`{"state":"Running","join":"AB","round":3,"rank":1,"size":4,"master":"10.0.0.7:29500","id":"3-x","address":"10.0.0.8","port":29501}`},
		"failed": {Request{State: Waiting, Join: "CD", Round: 3,
			Failure: &Failure{ExitCode: 7, Infrastructure: true, Message: "lost"}},
			`{"state":"Waiting","join":"CD","round":3,"failure":{"exitCode":7,"infrastructure":true,"message":"lost"}}`},
		"done": {Request{State: Done, Join: "AB", Round: 3}, `{"state":"Done","join":"AB","round":3}`},
		"round": {Response{Round: &Round{Number: 3, ID: "3-x", Size: 4, MasterAddress: "10.0.0.7", MasterPort: 29500,
			Min: 2, Max: 4}},
			`{"round":{"number":3,"id":"3-x","rank":0,"size":4,"masterAddress":"10.0.0.7","masterPort":29500,"min":2,"max":4}}`},
		"round over": {Response{Over: "pod a is gone"}, `{"over":"pod a is gone"}`},
		"refused":    {Response{Refused: "no"}, `{"refused":"no"}`},
		"finished":   {Response{Finished: "all have succeeded"}, `{"finished":"all have succeeded"}`},
		"no change":  {Response{}, `{}`},
	} {
		if got, err := json.Marshal(test.says); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", what, got, err, test.want)
		}
	}
	if Path != "/v1/rendezvous" || Audience != "rendezvous.muster.dev" || ServerName != "rendezvous.muster.dev" {
		t.Error("the path, audience or server name has changed, which existing agents use")
	}
}
