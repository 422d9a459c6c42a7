package rendezvous

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// post sends a raw request as the agent of the pod, and returns the raw response.
func (o *operator) post(index int, text string) string {
	o.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(o.authority.Trusted()))
	client := &http.Client{Timeout: testTimeout,
		Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: protocol.ServerName}}}
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "https://"+o.address+"/v1/rendezvous",
		strings.NewReader(text))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("Authorization", fmt.Sprintf("Bearer token-of-job-worker-%d", index))
	response, err := client.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		o.t.Fatalf("response to %s = %d: %s, %v", text, response.StatusCode, answer, err)
	}
	return string(bytes.TrimSpace(answer))
}

// TestOldAndNewAgentsShareARound: agents from before rounds had IDs, current ones, and later ones with fields unknown
// to this operator are in one round.
func TestOldAndNewAgentsShareARound(t *testing.T) {
	o := newOperator(t, "3:3")
	says := []string{
		`{"state":"Waiting","join":"A","address":"10.0.0.1","port":29500}`,
		`{"state":"Waiting","join":"B","address":"10.0.0.2","port":29500}`,
		`{"state":"Waiting","join":"C","address":"10.0.0.3","port":29500,"version":"9.9","devices":{"gpu":8},"addresses":["10.0.0.3"]}`,
	}
	answers := make([]chan string, len(says))
	for i, text := range says {
		o.pod(i)
		answers[i] = make(chan string, 1)
		go func() { answers[i] <- o.post(i, text) }()
	}
	var parts []protocol.Round
	for i := range says {
		var got protocol.Response
		if answer := <-answers[i]; json.Unmarshal([]byte(answer), &got) != nil || got.Round == nil {
			t.Fatalf("response to %s = %s, want a round", says[i], answer)
		}
		parts = append(parts, *got.Round)
		if got.Round.Rank != i || got.Round.Size != 3 || got.Round.Master() != "10.0.0.1:29500" {
			t.Errorf("round of pod %d = %+v", i, *got.Round)
		}
	}
	// All report that they run it, the first one without an ID and the last one with unknown fields. An operator that
	// has restarted regards them as members of one round, which is over for all of them once a member is gone.
	o.stop()
	o.start()
	running := []string{
		fmt.Sprintf(`{"state":"Running","join":"A","round":%d,"size":3,"master":"10.0.0.1:29500"}`, parts[0].Number),
		fmt.Sprintf(`{"state":"Running","join":"B","round":%d,"rank":1,"size":3,"master":"10.0.0.1:29500","id":%q}`,
			parts[1].Number, parts[1].ID),
		fmt.Sprintf(`{"state":"Running","join":"C","round":%d,"rank":2,"size":3,"master":"10.0.0.1:29500","id":%q,"progress":0.5}`,
			parts[2].Number, parts[2].ID),
	}
	for i, text := range running {
		go func() { answers[i] <- o.post(i, text) }()
		o.awaitRequest(fmt.Sprintf("uid-job-worker-%d", i))
	}
	o.deletePod(2)
	for i := range 2 {
		if answer := <-answers[i]; !strings.Contains(answer, `"over":"pod job-worker-2 is gone"`) {
			t.Errorf("response to pod %d = %s, want the round over", i, answer)
		}
	}
	<-answers[2]
}

// TestRequestWithUnknownStateIsHeld: an agent in an unknown state gets no instruction and disturbs no round.
func TestRequestWithUnknownStateIsHeld(t *testing.T) {
	o := newOperator(t, "1:2")
	o.hold = 10 * time.Millisecond
	o.stop()
	o.start()
	o.pod(0)
	if answer := o.post(0, `{"state":"Paused","join":"A"}`); answer != "{}" {
		t.Errorf("response = %s, want {}", answer)
	}
	o.run(1, works).awaitOutput("part 0 of 1")
}

// otherOperator starts an operator of another version, which answers each request with the next text sent to the
// channel.
func (o *operator) otherOperator() (address string, says chan<- string) {
	o.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		o.t.Fatal(err)
	}
	answers := make(chan string)
	server := &http.Server{TLSConfig: &tls.Config{GetCertificate: o.authority.GetCertificate},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case answer := <-answers:
				fmt.Fprintln(w, answer)
			case <-r.Context().Done():
			}
		})}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	o.t.Cleanup(func() { server.Close() })
	return listener.Addr().String(), answers
}

// TestAgentUnderstandsOldAndNewOperators: a round may lack fields that were added later, or have fields that the agent
// does not know.
func TestAgentUnderstandsOldAndNewOperators(t *testing.T) {
	o := newOperator(t, "1:1")
	for i, answer := range []string{
		`{"round":{"number":1,"rank":2,"size":3,"masterAddress":"10.0.0.1","masterPort":29500}}`,
		`{"round":{"number":1,"id":"1-x","rank":2,"size":3,"masterAddress":"10.0.0.1","masterPort":29500,"min":1,"max":3,"domain":"rack-7","peers":["a","b"]},"pace":"fast"}`,
	} {
		address, says := o.otherOperator()
		a := o.run(i, works, "MUSTER_RENDEZVOUS="+address)
		says <- answer
		a.awaitOutput("part 2 of 3 at 10.0.0.1:29500")
		says <- `{"over":"more waiting to join","until":12}`
		a.awaitOutput("round 1 is over: more waiting to join")
		a.awaitOutput("saved")
	}
}

// TestAgentBacksOffOnUnknownResponses: an agent ignores a response that it does not understand, and asks again with
// growing pauses.
func TestAgentBacksOffOnUnknownResponses(t *testing.T) {
	o := newOperator(t, "1:1")
	address, says := o.otherOperator()
	a := o.run(0, works, "MUSTER_RENDEZVOUS="+address)
	began := time.Now()
	for range 8 {
		says <- `{"stayAwhile":true}`
	}
	says <- `{"round":{"number":1,"size":1,"masterAddress":"a","masterPort":1}}`
	a.awaitOutput("part 0 of 1")
	if took := time.Since(began); took < time.Second { // the shortest pauses between nine requests add up to 2.2 seconds
		t.Errorf("the agent sent nine requests within %s, want growing pauses", took)
	}
}
