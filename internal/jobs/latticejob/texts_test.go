package latticejob

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// task has the job's task t be another, with a container main if it says none.
func task(t *testing.T, text string) func(*scene) {
	return func(s *scene) {
		spec := lattice.JobTaskSpec{}
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if spec.Workload.Containers == nil {
			spec.Workload.Containers = s.seen.Job.Spec.Tasks["t"].Workload.Containers
		}
		s.seen.Job.Spec.Tasks["t"] = spec
	}
}

// TestMessagesAreCut: an error may quote names of any length, and a status for which etcd has no room beside the spec
// is never written.
func TestMessagesAreCut(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	p := newScene().with(task(t, "workload: {containers: {main: {image: i, envFrom: [x"+long+"]}}}")).plan(t)
	said := p.Status.(*lattice.LatticeJob).Status
	if said.Phase != lattice.Failed || len(said.Message) > messageBytes || !utf8.ValidString(said.Message) {
		t.Errorf("phase %s with a message of %d bytes, valid %v; want Failed with at most %d", said.Phase, len(said.Message),
			utf8.ValidString(said.Message), messageBytes)
	}
	s := newScene().external(jobs.Admission{Grant: jobs.Admitted, UnreadySince: now,
		PodSets: map[string]jobs.PodSetAdmission{"t": {Count: 2, Asked: 2}}})
	p = s.plan(t)
	if p.StatusOnError == nil {
		t.Fatalf("nothing is applied: %s", writes(p))
	}
	status, _ := p.StatusOnError(apierrors.NewBadRequest(long))
	s.seen.Job = status.(*lattice.LatticeJob)
	if n := len(s.seen.Job.Status.Message); n > messageBytes {
		t.Errorf("a message of %d bytes after a refusal, want at most %d", n, messageBytes)
	}
	s.seen.Now = now.Add(time.Hour)
	if s.plan(t).Progress.Refused == "" {
		t.Error("the job keeps its quota though it is refused: the time of the first refusal is lost")
	}
}

// TestMessagesOfTheProductAreKept: tools look for what the product tells of a job. What ends with "…" goes on with
// more. Messages about access that Cedar policies deny are not tested: there are none.
func TestMessagesOfTheProductAreKept(t *testing.T) {
	const failed, inTask = "Failed to compile job: ", "Failed to compile job: compilation failed for task 't': "
	needs := func(resource string) func(*scene) {
		return task(t, "workload: {resources: {r: {"+resource+"}}}")
	}
	main := func(fields string) func(*scene) {
		return task(t, "workload: {containers: {main: {image: i, "+fields+"}}, resources: {v: {type: volume, id: v}}}")
	}
	training := func(s *scene) {
		main("args: [x]")(s)
		s.seen.Job.Spec.Training = &lattice.TrainingConfig{CoordinatorTask: "t"}
	}
	for text, s := range map[string]*scene{
		lattice.SubmittedMessage:    newScene().vcjob(volcano.Running, "", ""),
		lattice.SucceededMessage:    newScene().vcjob(volcano.Completed, "", ""),
		lattice.FailedMessage:       newScene().vcjob(volcano.Failed, "", ""),
		failed + "job has no tasks": newScene().with(func(s *scene) { s.seen.Job.Spec.Tasks = nil }),
		"Compile failed (will retry): …": newScene().with(callService).with(func(s *scene) {
			s.seen.Job.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
		}),
		inTask + "invalid container 'main': …": newScene().
			with(main("command: [sh]")),
		inTask + "resource 'r': …": newScene().
			with(needs("type: gpu, params: {count: 0}")),
		inTask + "invalid volume config: …": newScene().
			with(needs("type: volume")),
		inTask + "invalid secret config: …": newScene().
			with(needs("type: secret, id: x")),
		inTask + "template error: …": newScene().
			with(main("variables: {X: '${nope}'}")),
		inTask + "file compilation error: …": newScene().
			with(main("files: {a: {content: x}}")),
		inTask + "variable 'X' references secret resource 'r' which does not exist": newScene().
			with(main("variables: {X: '${secret.r.k}'}")),
		inTask + "imagePullSecrets references resource 'r' which does not exist": newScene().
			with(task(t, "imagePullSecrets: [r]")),
		inTask + "imagePullSecrets references resource 'r' but it is type 'volume', not 'secret'": newScene().
			with(task(t, "imagePullSecrets: [r]\nworkload: {resources: {r: {type: volume, id: v}}}")),
		inTask + "secret resource 'r': missing 'id' field (remote key for secret store)": newScene().
			with(needs("type: secret, params: {provider: p}")),
		inTask + "container 'main' env_from references 'v' which is not a type: secret resource": newScene().
			with(main("envFrom: [v]")),
		failed + "training task 't' container 'main' must specify a command": newScene().with(training),
	} {
		got := s.plan(t).Status.(*lattice.LatticeJob).Status.Message
		if begin, more := strings.CutSuffix(text, "…"); got != text &&
			!(more && strings.HasPrefix(got, begin) && len(got) > len(begin)) {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	status, _ := newScene().plan(t).StatusOnError(errors.New("no"))
	if got := status.(*lattice.LatticeJob).Status.Message; got != "Apply failed (will retry): no" {
		t.Errorf("of what cannot be written: %q", got)
	}
	if state := newScene().external(jobs.Admission{Grant: jobs.Unqueued}).vcjob(volcano.Aborted, "",
		"").plan(t).Status.(*lattice.LatticeJob).Status; state.Phase != lattice.Failed {
		t.Errorf("of one that was aborted: %+v", state)
	}
}

// TestSecretsAreNotReported: what is in a spec, and may be a secret, is in no status and no
// event, be it right or wrong.
func TestSecretsAreNotReported(t *testing.T) {
	const planted = "hunter2"
	for name, main := range map[string]lattice.SidecarContainer{
		"in a variable":                {Variables: map[string]string{"X": "pass " + planted + " ${secret.s.k}"}},
		"in a variable that is wrong":  {Variables: map[string]string{"X": planted + " ${secret.nope.k}"}},
		"beside an open placeholder":   {Variables: map[string]string{"X": planted + " ${"}},
		"in a file":                    {Files: map[string]lattice.FileMount{"/f": {Content: ptr.To(planted + " ${nope}")}}},
		"in a binary file":             {Files: map[string]lattice.FileMount{"/f": {BinaryContent: ptr.To("!" + planted)}}},
		"in the args":                  {Args: []string{planted}, Command: []string{"relative"}},
		"in the password of endpoints": {},
	} {
		s := newScene()
		s.seen.Facts.Served[compile.ExternalSecrets] = true
		if name == "in the password of endpoints" {
			resource(s, lattice.ExternalServiceResource, `{"endpoints": {"db": "postgres://u:`+planted+`@:99999"}}`)
		} else {
			needSecret(s)
		}
		task := s.seen.Job.Spec.Tasks["t"]
		main.Image = "i"
		task.Workload.Containers = map[string]lattice.ContainerSpec{"main": {SidecarContainer: main}}
		s.seen.Job.Spec.Tasks["t"] = task
		plan := s.plan(t)
		told := plan.Status.(*lattice.LatticeJob).Status.Message
		for _, e := range plan.Events {
			told += e.Message
		}
		if strings.Contains(told, planted) {
			t.Errorf("%s: %s", name, told)
		}
	}
}
