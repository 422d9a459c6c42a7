package process

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxKey is the key of the sandbox's ID in a record, since a status has no field for it.
const sandboxKey = "sandbox"

// saveRecord keeps a container's status for the next run of the node: how it ended, where its log is, and with that
// its pod's restart counts. It must be called with the lock held. Records are not synced to disk: a machine that lost
// power lost the containers too.
func (r *Runtime) saveRecord(c *container) error {
	record, err := proto.Marshal(&runtimeapi.ContainerStatusResponse{Status: c.status,
		Info: map[string]string{sandboxKey: c.sandbox}})
	path := r.recordPath(c.id)
	if err == nil {
		err = os.WriteFile(path+".new", record, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("recording container %s: %w", c.id, err)
	}
	return nil
}

func (r *Runtime) removeRecord(id string) error {
	if err := os.Remove(r.recordPath(id)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("forgetting container %s: %w", id, err)
	}
	return nil
}

func (r *Runtime) recordPath(id string) string { return filepath.Join(r.recordsDir(), id+".status") }

// loadRecords reads the records of an earlier run, whose processes died with it.
func (r *Runtime) loadRecords() error {
	paths, err := filepath.Glob(filepath.Join(r.recordsDir(), "*.status"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a container record: %w", err)
		}
		var record runtimeapi.ContainerStatusResponse
		if err := proto.Unmarshal(data, &record); err != nil || record.GetStatus().GetId() == "" {
			os.Remove(path) // cut off by a crash: as if the container had never been
			continue
		}
		if record.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_CREATED {
			os.Remove(path) // it never ran
			continue
		}
		c := &container{runtime: r, id: record.GetStatus().GetId(), sandbox: record.GetInfo()[sandboxKey],
			status: record.GetStatus(), ended: make(chan struct{})}
		close(c.ended)
		if c.status.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
			c.status.State = runtimeapi.ContainerState_CONTAINER_EXITED
			c.status.ExitCode = 128 + 9
			c.status.Reason = "NodeStopped"
			c.status.Message = "the local node stopped while this container ran, and the container ended with it"
			c.status.FinishedAt = time.Now().UnixNano()
			if err := r.saveRecord(c); err != nil {
				return err
			}
		}
		r.containers[c.id] = c
	}
	return nil
}
