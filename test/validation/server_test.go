package validation

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

// operator is the user that the policies take for the operator.
const operator = install.DefaultOperatorUser

// kind is how objects of a kind are written, and the plainest object of it.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
	plain      string
}

// server writes objects of all kinds, as an administrator or as somebody else.
type server struct {
	config    *rest.Config
	namespace string
	clients   map[string]dynamic.Interface
	made      int
	warnings  warnings
}

// warnings are what the API server has warned of since they were last taken.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader takes in a warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.texts
	w.texts = nil
	return taken
}

func newServer(t *testing.T) *server {
	cluster := testcluster.Get(t)
	s := &server{config: cluster.Config, namespace: cluster.Namespace(t), clients: map[string]dynamic.Interface{}}
	s.grant(t)
	return s
}

// try makes an attempt and gives the API server's answer to its last write, which changes nothing: it is a dry run.
// Where owners are named that there are not, the garbage collector may remove the object before that, and another is
// made.
func (s *server) try(t *testing.T, name string, attempt attempt) error {
	t.Helper()
	var err error
	for range 10 {
		if err = s.tryOnce(t, name, attempt); !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

func (s *server) tryOnce(t *testing.T, name string, attempt attempt) error {
	t.Helper()
	resource := s.resource(t, name, "")
	object := s.plain(t, name)
	writer := s.resource(t, name, attempt.user)
	if attempt.before == nil {
		attempt.change.apply(object.Object)
		if namespace := object.GetNamespace(); namespace != "" && namespace != s.namespace {
			writer = s.clientFor(t, attempt.user).Resource(kinds[name].resource).Namespace(namespace)
		}
		_, err := writer.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	stored := s.store(t, resource, object, attempt.before)
	if attempt.next != nil {
		stored = s.storeStatus(t, resource, stored, attempt.next)
	}
	s.warnings.take() // the attempt is the change
	attempt.change.apply(stored.Object)
	options := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	var err error
	if attempt.change.touchesStatus() {
		_, err = writer.UpdateStatus(t.Context(), stored, options)
	} else {
		_, err = writer.Update(t.Context(), stored, options)
	}
	return err
}

// store makes an object with a status and gives it as the API server has it.
func (s *server) store(t *testing.T, resource dynamic.ResourceInterface, object *unstructured.Unstructured,
	before edits) *unstructured.Unstructured {
	t.Helper()
	spec, status := edits{}, edits{}
	for path, value := range before {
		if strings.HasPrefix(path, "status") {
			status[path] = value
		} else {
			spec[path] = value
		}
	}
	spec.apply(object.Object)
	stored, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making the object to change: %v", err)
	}
	if len(status) == 0 {
		return stored
	}
	return s.storeStatus(t, resource, stored, status)
}

func (s *server) storeStatus(t *testing.T, resource dynamic.ResourceInterface, stored *unstructured.Unstructured,
	status edits) *unstructured.Unstructured {
	t.Helper()
	status.apply(stored.Object)
	stored, err := resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("writing the status to change: %v", err)
	}
	return stored
}

// plain gives the plainest object of a kind, under a name that no other has.
func (s *server) plain(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: fromYAML(kinds[name].plain).(map[string]any)}
	s.made++
	object.SetName(fmt.Sprintf("t%d", s.made))
	if kinds[name].namespaced {
		object.SetNamespace(s.namespace)
	}
	return object
}

// resource gives a client for the objects of a kind, as a user: of the group of administrators, unless it is one of
// rightsOf.
func (s *server) resource(t *testing.T, name, user string) dynamic.ResourceInterface {
	t.Helper()
	resources := s.clientFor(t, user).Resource(kinds[name].resource)
	if kinds[name].namespaced {
		return resources.Namespace(s.namespace)
	}
	return resources
}

func (s *server) clientFor(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	if s.clients[user] == nil {
		config := rest.CopyConfig(s.config)
		config.WarningHandler = &s.warnings
		if user != "" {
			config.Impersonate = rest.ImpersonationConfig{UserName: user}
			if rightsOf[user] == nil {
				config.Impersonate.Groups = []string{"system:masters"}
			}
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatalf("making a client: %v", err)
		}
		s.clients[user] = client
	}
	return s.clients[user]
}
