package node

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provisionClaims creates a storage class named after the namespace, and provides a folder of the node for each claim
// of that class, until the end of the test.
func (w *world) provisionClaims() {
	w.Helper()
	class := w.Namespace
	w.Shared(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "muster.test/folders"})
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	w.Cleanup(func() { cancel(); <-done })
	events, err := w.Client.Watch(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(w.Namespace))
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != class ||
				claim.Spec.VolumeName != "" {
				continue
			}
			if err := w.provision(ctx, claim); err != nil && ctx.Err() == nil {
				w.Errorf("creating a volume for %s: %v", claim.Name, err)
			}
		}
	}()
}

// provision creates a folder of the node, and a volume of it for the claim.
func (w *world) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	folder := filepath.Join("/run", "volumes", string(claim.UID))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777); err != nil { // writable by any user of a pod
		return err
	}
	err := w.Client.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "folder-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              *claim.Spec.StorageClassName,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      claim.Spec.Resources.Requests,
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
		},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
