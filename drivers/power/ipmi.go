package power

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	ipmi "github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
)

// ipmiPort is where controllers listen (IPMI 2.0, 13.1.2).
const ipmiPort = 623

// viaIPMI is a controller that speaks IPMI. Sessions of controllers time out
// within a minute, so every call opens its own.
type viaIPMI struct {
	host           string
	port           int
	user, password string
}

func newIPMI(c Config, password string) (*viaIPMI, error) {
	v := &viaIPMI{host: c.Address, port: ipmiPort, user: c.User, password: password}
	if host, port, err := net.SplitHostPort(c.Address); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("power: %q is not HOST:PORT", c.Address)
		}
		v.host, v.port = host, int(n)
	}
	v.host = strings.Trim(v.host, "[]")
	if v.host == "" {
		return nil, fmt.Errorf("power: no address")
	}
	return v, nil
}

// with calls a function in a session.
func (v *viaIPMI) with(ctx context.Context, doing string, f func(context.Context, *ipmi.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := ipmi.NewClient(v.host, v.port, v.user, v.password)
	if err == nil {
		// Asking which suites there are is not answered by every controller:
		// these two, with HMAC-SHA256 and HMAC-SHA1, are what they have.
		c.WithTimeout(answerTime/10).WithRetry(2).WithCipherSuiteID(types.CipherSuiteID17, types.CipherSuiteID3)
		if err = c.Connect(ctx); err == nil {
			err = f(ctx, c)
			_ = c.Close(ctx) // the controller forgets the session by itself
		}
	}
	if err != nil {
		return fmt.Errorf("IPMI at %s: %s: %w", net.JoinHostPort(v.host, strconv.Itoa(v.port)), doing, err)
	}
	return nil
}

func (v *viaIPMI) On(ctx context.Context) (on bool, err error) {
	err = v.with(ctx, "asking for the state of the power", func(ctx context.Context, c *ipmi.Client) error {
		status, err := c.GetChassisStatus(ctx)
		if err == nil {
			on = status.PowerIsOn
		}
		return err
	})
	return on, err
}

func (v *viaIPMI) Do(ctx context.Context, a Action) error {
	control, known := map[Action]chassis.ChassisControl{
		TurnOn: chassis.ChassisControlPowerUp, TurnOff: chassis.ChassisControlPowerDown, Cycle: chassis.ChassisControlPowerCycle,
	}[a]
	if !known {
		return errAction(a)
	}
	return v.with(ctx, "power "+string(a), func(ctx context.Context, c *ipmi.Client) error {
		_, err := c.ChassisControl(ctx, control)
		return err
	})
}

func (v *viaIPMI) BootFromNetwork(ctx context.Context) error {
	return v.with(ctx, "setting the boot device", func(ctx context.Context, c *ipmi.Client) error {
		return c.SetBootDevice(ctx, types.BootDeviceSelectorForcePXE, types.BIOSBootTypeLegacy, false)
	})
}

func (v *viaIPMI) Close() error { return nil }
