package podvolume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// node returns the volumes of a node whose namespace ml has a ConfigMap "settings" and a Secret "keys".
func node(t *testing.T, objects ...any) (*Volumes, string, map[string]string) {
	t.Helper()
	dir := t.TempDir()
	settings := map[string]string{"rate": "0.1"}
	client := fake.NewClientset()
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			_, err = client.CoreV1().PersistentVolumeClaims(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		case *corev1.PersistentVolume:
			_, err = client.CoreV1().PersistentVolumes().Create(t.Context(), object, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	volumes, err := New(Options{
		Dir:       filepath.Join(dir, "volumes"),
		PodDir:    func(uid types.UID) string { return filepath.Join(dir, "pods", string(uid)) },
		MemoryDir: filepath.Join(dir, "memory-0"), NodeName: "local", Client: client, Recorder: record.NewFakeRecorder(10),
		ConfigMap: func(_, name string) (*corev1.ConfigMap, error) {
			if name != "settings" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
			}
			return &corev1.ConfigMap{Data: settings}, nil
		},
		Secret: func(_, name string) (*corev1.Secret, error) {
			return &corev1.Secret{Data: map[string][]byte{"token": []byte("s3cret")}}, nil
		},
		Token: func(_, name string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
			return &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "token of " + name +
				" for " + string(request.Spec.BoundObjectRef.UID)}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { volumes.Close() })
	return volumes, dir, settings
}

func podWith(sources map[string]corev1.VolumeSource) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "worker", UID: "uid-1",
			Labels: map[string]string{"app": "train"}},
		Spec: corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "main"}}},
	}
	for name, source := range sources {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
	return pod
}

func TestVolumesHaveTheContentThatTheManifestSays(t *testing.T) {
	volumes, dir, settings := node(t)
	host := t.TempDir()
	mode := ptr.To[int32](0o644)
	pod := podWith(map[string]corev1.VolumeSource{
		"scratch": {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"memory":  {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		"settings": {ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, DefaultMode: mode}},
		"keys": {Secret: &corev1.SecretVolumeSource{SecretName: "keys", DefaultMode: mode}},
		"host": {HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(host, "made"),
			Type: ptr.To(corev1.HostPathDirectoryOrCreate)}},
		"labels": {DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: mode, Items: []corev1.DownwardAPIVolumeFile{
			{Path: "app", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['app']"}},
		}}},
		"kube-api-access": {Projected: &corev1.ProjectedVolumeSource{DefaultMode: mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		}}},
	})
	made, err := volumes.SetUp(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	content := func(volume, file string) string {
		data, err := os.ReadFile(filepath.Join(made[volume].Path, file))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	for _, want := range []struct{ volume, file, text string }{
		{"settings", "rate", "0.1"}, {"keys", "token", "s3cret"}, {"labels", "app", "train"},
		{"kube-api-access", "token", "token of default for uid-1"}, {"kube-api-access", "rate", "0.1"},
	} {
		if got := content(want.volume, want.file); got != want.text {
			t.Errorf("%s/%s = %q, want %q", want.volume, want.file, got, want.text)
		}
		if !made[want.volume].ReadOnly {
			t.Errorf("volume %s is writable, want read-only", want.volume)
		}
	}
	for _, name := range []string{"memory", "keys"} {
		real, err := filepath.EvalSymlinks(made[name].Path)
		if err != nil || !strings.HasPrefix(real, filepath.Join(dir, "memory-0", "uid-1")) {
			t.Errorf("path of volume %s = %s (%v), want one in memory", name, real, err)
		}
	}
	if made["host"].Path != filepath.Join(host, "made") {
		t.Errorf("host path = %s", made["host"].Path)
	}
	if err := os.WriteFile(filepath.Join(made["scratch"].Path, "kept"), nil, 0o600); err != nil {
		t.Error(err)
	}
	settings["rate"] = "0.2"
	if _, err := volumes.SetUp(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := content("settings", "rate"); got != "0.2" {
		t.Errorf("content after the ConfigMap changed = %q, want 0.2", got)
	}
	content("scratch", "kept")
	if err := volumes.Remove(pod.UID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "memory-0", "uid-1")); !os.IsNotExist(err) {
		t.Errorf("memory volume of a removed pod: got error %v, want not found", err)
	}
}

func TestMissingObjectIsNamedAndMayAppearLater(t *testing.T) {
	volumes, _, _ := node(t)
	_, err := volumes.SetUp(t.Context(), podWith(map[string]corev1.VolumeSource{
		"v": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"},
			DefaultMode: ptr.To[int32](0o644)}},
	}))
	if err == nil || !strings.Contains(err.Error(), `volume "v"`) || !strings.Contains(err.Error(), `"none" not found`) ||
		isUnsupported(err) {
		t.Errorf("got error %v, want one that names volume and object", err)
	}
}

func isUnsupported(err error) bool {
	var unsupported *UnsupportedError
	return errors.As(err, &unsupported)
}

func TestDriversAreRefused(t *testing.T) {
	volumes, _, _ := node(t)
	_, err := volumes.SetUp(t.Context(),
		podWith(map[string]corev1.VolumeSource{"v": {NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}}))
	if !isUnsupported(err) {
		t.Errorf("an NFS volume: got error %v, want unsupported", err)
	}
}

func TestClaimIsThePathThatItIsBoundTo(t *testing.T) {
	path := t.TempDir()
	claim := func(name, bound string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: bound},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	volume := func(name string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
	}
	volumes, _, _ := node(t,
		claim("data", "pv-host", corev1.ClaimBound), claim("local", "pv-local", corev1.ClaimBound),
		claim("cloud", "pv-cloud", corev1.ClaimBound), claim("waiting", "", corev1.ClaimPending),
		volume("pv-host", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}),
		volume("pv-local", corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}),
		volume("pv-cloud", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}),
	)
	use := func(name string) (Volume, error) {
		made, err := volumes.SetUp(t.Context(), podWith(map[string]corev1.VolumeSource{
			"v": {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
		}))
		return made["v"], err
	}
	for _, name := range []string{"data", "local"} {
		if got, err := use(name); err != nil || got.Path != path {
			t.Errorf("claim %s = %+v, %v", name, got, err)
		}
	}
	if _, err := use("cloud"); !isUnsupported(err) {
		t.Errorf("a claim on a driver's volume: got error %v, want unsupported", err)
	}
	if _, err := use("waiting"); err == nil || isUnsupported(err) || !strings.Contains(err.Error(), "not bound") {
		t.Errorf("an unbound claim: got error %v, want not bound", err)
	}
}
