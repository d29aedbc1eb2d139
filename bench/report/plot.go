package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is a plot of lines.
type figure struct {
	file, title, x, y string
	logX, logY        bool
	fromZero          bool      // the y axis begins there
	ticks             []float64 // of the x axis
	lines             []line
}

type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// floor stands for errors that are smaller, or none, on a logarithmic axis.
const floor = 1e-6

// The palette of M. Okabe and K. Ito, which colour-blind readers can tell apart,
// darkened where it is pale. Shapes and dashes tell lines apart in black and
// white.
var (
	colors = []color.RGBA{
		{0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x72, 0xb2, 0xff}, {0x56, 0x9f, 0xd9, 0xff},
		{0x00, 0x8a, 0x63, 0xff}, {0x00, 0x00, 0x00, 0xff}, {0xb0, 0x55, 0x8b, 0xff},
		{0x80, 0x80, 0x80, 0xff}, {0xc0, 0x85, 0x00, 0xff}, {0x7a, 0x4a, 0x1e, 0xff},
	}
	shapes = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.RingGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
		draw.PyramidGlyph{}, draw.PlusGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{},
	}
	dashes = [][]vg.Length{
		nil, {6, 2}, {2, 2}, nil, {6, 2, 2, 2}, {4, 4}, {1, 3}, {8, 3}, {3, 2, 1, 2},
	}
)

const (
	width       = 8 * vg.Inch
	height      = 4.5 * vg.Inch
	legendWidth = 2.2 * vg.Inch
)

// save writes the figure as SVG.
func (f figure) save(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = f.title, f.x
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}
	}
	p.Title.TextStyle.Font.Size = 13
	p.Title.Padding = 8
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	legend := plot.NewLegend()
	legend.TextStyle.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10}
	legend.Top, legend.Left = true, true
	legend.ThumbnailWidth, legend.Padding = 0.4*vg.Inch, 4
	// The first line is drawn last, on top.
	for i := len(f.lines) - 1; i >= 0; i-- {
		if err := f.add(p, i); err != nil {
			return err
		}
	}
	for i := range f.lines {
		l, s, err := f.plotters(i)
		if err != nil {
			return err
		}
		legend.Add(f.lines[i].name, l, s)
	}
	f.axes(p)
	c := vgsvg.New(width, height)
	canvas := draw.New(c)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	p.Draw(draw.Crop(canvas, 26, -legendWidth, 4, -6))
	// Not p.Y.Label: on a logarithmic axis it makes room for itself at the top.
	label := p.X.Label.TextStyle
	label.Rotation, label.XAlign = math.Pi/2, draw.XCenter
	canvas.FillText(label, vg.Point{X: 20, Y: height / 2}, f.y)
	legend.Draw(draw.Crop(canvas, width-legendWidth+10, 0, 0, -32))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return err
	}
	// A reader without this font should get another sans-serif.
	svg := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(filepath.Join(folder, f.file), svg, 0o666)
}

func (f figure) add(p *plot.Plot, i int) error {
	if len(f.lines[i].points) == 0 {
		return nil
	}
	l, s, err := f.plotters(i)
	if err != nil {
		return err
	}
	p.Add(l, s)
	return nil
}

// plotters returns line i and its marks. The first, HeavyKeeper's, is heavier.
func (f figure) plotters(i int) (*plotter.Line, *plotter.Scatter, error) {
	points := plotter.XYs{}
	for _, p := range f.lines[i].points {
		if f.logY {
			p.y = max(p.y, floor)
		}
		points = append(points, plotter.XY{X: p.x, Y: p.y})
	}
	l, s, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, nil, err
	}
	l.Width = 1.2
	if i == 0 {
		l.Width = 2.6
	}
	l.Color, s.Color = colors[i], colors[i]
	l.Dashes = dashes[i]
	s.Shape, s.Radius = shapes[i], 3
	return l, s, nil
}

func (f figure) axes(p *plot.Plot) {
	p.X.Tick.Marker = plot.TickerFunc(func(least, most float64) []plot.Tick {
		var ticks []plot.Tick
		for _, v := range f.ticks {
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
		}
		return ticks
	})
	if f.logX {
		p.X.Scale = plot.LogScale{}
	}
	switch {
	case f.logY:
		p.Y.Scale = plot.LogScale{}
		p.Y.Min = floor
		p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
		p.Y.Tick.Marker = plot.TickerFunc(decades)
	case f.fromZero:
		p.Y.Min = 0
		p.Y.Max = 10 * math.Ceil(p.Y.Max/10)
		p.Y.Tick.Marker = plot.TickerFunc(tens)
	default:
		p.Y.Min, p.Y.Max = 0, 1
	}
}

// tens returns about ten ticks from 0, at multiples of 10.
func tens(_, most float64) []plot.Tick {
	step := 10 * max(math.Round(most/100), 1)
	var ticks []plot.Tick
	for v := 0.0; v <= most; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', 0, 64)})
	}
	return ticks
}

// decades returns a tick at each power of ten.
func decades(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Round(math.Log10(least)); e <= math.Round(math.Log10(most)); e++ {
		v := math.Pow(10, e)
		label := strconv.FormatFloat(v, 'f', -1, 64)
		if v < 0.001 || v > 1000 {
			label = fmt.Sprintf("1e%d", int(e))
		}
		if v <= floor {
			label = "≤ " + label
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}
