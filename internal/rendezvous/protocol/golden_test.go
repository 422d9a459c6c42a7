package protocol

import (
	"encoding/json"
	"testing"
)

// Pods keep the agent that they were created with, and a newer operator takes over while they run. So a
// field never changes its name or meaning; new data gets new fields.
func TestWireFormatIsStable(t *testing.T) {
	for what, test := range map[string]struct {
		says any
		want string
	}{
		"who waits for the first time": {Request{State: Waiting, Join: "AB", Address: "10.0.0.7", Port: 29500},
			`{"state":"Waiting","join":"AB","address":"10.0.0.7","port":29500}`},
		"who runs": {Request{State: Running, Join: "AB", Round: 3, Rank: 1, Size: 4, Master: "10.0.0.7:29500", ID: "3-x", Address: "10.0.0.8", Port: 29501},
			`{"state":"Running","join":"AB","round":3,"rank":1,"size":4,"master":"10.0.0.7:29500","id":"3-x","address":"10.0.0.8","port":29501}`},
		"who has failed": {Request{State: Waiting, Join: "CD", Round: 3, Failure: &Failure{ExitCode: 7, Infrastructure: true, Message: "lost"}},
			`{"state":"Waiting","join":"CD","round":3,"failure":{"exitCode":7,"infrastructure":true,"message":"lost"}}`},
		"who is done": {Request{State: Done, Join: "AB", Round: 3}, `{"state":"Done","join":"AB","round":3}`},
		"a part in a round": {Response{Round: &Round{Number: 3, ID: "3-x", Size: 4, MasterAddress: "10.0.0.7", MasterPort: 29500, Min: 2, Max: 4}},
			`{"round":{"number":3,"id":"3-x","rank":0,"size":4,"masterAddress":"10.0.0.7","masterPort":29500,"min":2,"max":4}}`},
		"that a round is over":  {Response{Over: "pod a is gone"}, `{"over":"pod a is gone"}`},
		"that there is no part": {Response{Refused: "no"}, `{"refused":"no"}`},
		"nothing new":           {Response{}, `{}`},
	} {
		if got, err := json.Marshal(test.says); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", what, got, err, test.want)
		}
	}
	if Path != "/v1/rendezvous" || Audience != "rendezvous.muster.dev" || ServerName != "rendezvous.muster.dev" {
		t.Error("who was made before asks elsewhere, or shows another token, or trusts another name")
	}
}
