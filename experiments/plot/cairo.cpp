#include "experiments/plot/cairo.hpp"

#include "core/error.hpp"

#ifdef MOELAB_HAS_CAIRO
#include <memory>
#include <numbers>

#include <cairo-pdf.h>
#include <cairo.h>
#endif

namespace moelab::plot {

#ifdef MOELAB_HAS_CAIRO

namespace {

constexpr double kDotsPerPoint = 200.0 / 72.0;

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append(void* to, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status) {
  require(status == CAIRO_STATUS_SUCCESS, "[plot] cairo: {}", cairo_status_to_string(status));
}

void set_colour(cairo_t* c, Colour colour) {
  cairo_set_source_rgba(c, colour.r / 255.0, colour.g / 255.0, colour.b / 255.0, colour.opacity);
}

void trace(cairo_t* c, const std::vector<Point>& points) {
  cairo_new_path(c);
  for (const Point& p : points) cairo_line_to(c, p.x, p.y);
}

void draw(cairo_t* c, const Line& line) {
  const std::span<const double> dashes = lengths_of(line.dash);
  set_colour(c, line.colour);
  cairo_set_line_width(c, line.width);
  cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
  cairo_set_dash(c, dashes.data(), static_cast<int>(dashes.size()), 0);
  trace(c, line.points);
  cairo_stroke(c);
}

void draw(cairo_t* c, const Area& area) {
  set_colour(c, area.colour);
  trace(c, area.points);
  cairo_fill(c);
}

void draw(cairo_t* c, const Text& text) {
  cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         text.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(c, text.size);
  set_colour(c, text.colour);
  cairo_text_extents_t extents;
  cairo_text_extents(c, text.text.c_str(), &extents);
  const double shift = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
  cairo_save(c);
  cairo_translate(c, text.at.x, text.at.y);
  if (text.vertical) cairo_rotate(c, -std::numbers::pi / 2);
  cairo_move_to(c, -shift * extents.x_advance, 0);
  cairo_show_text(c, text.text.c_str());
  cairo_restore(c);
}

void draw_all(cairo_surface_t* surface, const Drawing& drawing, double scale) {
  const Context context(cairo_create(surface), cairo_destroy);
  cairo_t* c = context.get();
  cairo_scale(c, scale, scale);
  cairo_set_source_rgb(c, 1, 1, 1);
  cairo_paint(c);
  for (const Shape& shape : drawing.shapes) std::visit([&](const auto& s) { draw(c, s); }, shape);
  check(cairo_status(c));
}

}  // namespace

std::string to_pdf(const Drawing& drawing) {
  std::string bytes;
  const Surface surface(cairo_pdf_surface_create_for_stream(append, &bytes, drawing.width, drawing.height),
                        cairo_surface_destroy);
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, drawing.title.c_str());
  draw_all(surface.get(), drawing, 1);
  cairo_surface_finish(surface.get());
  check(cairo_surface_status(surface.get()));
  return bytes;
}

std::string to_png(const Drawing& drawing) {
  const Surface surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(drawing.width * kDotsPerPoint),
                                 static_cast<int>(drawing.height * kDotsPerPoint)),
      cairo_surface_destroy);
  draw_all(surface.get(), drawing, kDotsPerPoint);
  std::string bytes;
  check(cairo_surface_write_to_png_stream(surface.get(), append, &bytes));
  return bytes;
}

#else

std::string to_pdf(const Drawing&) {
  fail("[plot] this program was built without cairo: it writes .svg only");
}
std::string to_png(const Drawing&) {
  fail("[plot] this program was built without cairo: it writes .svg only");
}

#endif

}  // namespace moelab::plot
