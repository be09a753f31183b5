// uint8 frames: where they are, and four of their pixels as three words of packed RGB.

#pragma once

#include "memory.cuh"

/// The numbers of `PixelFormat`'s order in memory, as the host passes them.
enum Format {
    EF_RGB = 0,
    EF_BGR = 1,
    EF_RGBX = 2, // the fourth byte is never read nor changed
    EF_BGRX = 3,
    EF_PLANAR = 4, // planes of R, G, B
};

/// Frames of one size, `planes` of them each (3 for EF_PLANAR, else 1).
///
/// With `table` null the frames are one batch: plane p of sample s begins at `base + s * sample_stride + p *
/// plane_stride` and its rows are `row_stride` bytes apart. Otherwise `table` has for each plane, samples first, its
/// address and its row stride, and the other fields are not used.
struct Frames {
    unsigned char *base;
    long long sample_stride, plane_stride, row_stride;
    const long long *table;
};

struct Plane {
    unsigned char *data;
    long long row_stride;
};

/// One plane of one sample.
__device__ __forceinline__ Plane plane_of(const Frames &frames, int sample, int planes, int plane) {
    if (frames.table) {
        const long long *entry = frames.table + 2 * ((long long)sample * planes + plane);
        return {(unsigned char *)entry[0], entry[1]};
    }
    return {frames.base + sample * frames.sample_stride + plane * frames.plane_stride, frames.row_stride};
}

__device__ __forceinline__ int bytes_per_pixel(int format) {
    return format == EF_PLANAR ? 1 : format >= EF_RGBX ? 4 : 3;
}

/// Whether the rows of all planes follow each other without padding.
__device__ __forceinline__ bool is_contiguous(const Plane (&planes)[3], int format, int width) {
    const long long row = (long long)width * bytes_per_pixel(format);
    return planes[0].row_stride == row &&
           (format != EF_PLANAR || (planes[1].row_stride == row && planes[2].row_stride == row));
}

__device__ __forceinline__ void planes_of(const Frames &frames, int sample, int format, Plane (&planes)[3]) {
    planes[0] = plane_of(frames, sample, format == EF_PLANAR ? 3 : 1, 0);
    if (format == EF_PLANAR) {
        planes[1] = plane_of(frames, sample, 3, 1);
        planes[2] = plane_of(frames, sample, 3, 2);
    }
}

/// Three words of packed RGB to packed BGR or back.
__device__ __forceinline__ void swap_ends(unsigned (&w)[3]) {
    const unsigned a = w[0], b = w[1], c = w[2];
    w[0] = __byte_perm(a, b, 0x5012);
    w[1] = __byte_perm(__byte_perm(a, b, 0x7734), c, 0x2410);
    w[2] = __byte_perm(b, c, 0x5672);
}

/// The place of four pixels in each of the planes of a frame, in bytes from the plane's start.
struct Place {
    long long at[3];
};

/// Group `group` of four pixels: of the whole frame when it is contiguous, else counted row by row.
__device__ __forceinline__ Place place_of(const Plane (&planes)[3], int format, bool contiguous, int width, int group) {
    const int bytes = 4 * bytes_per_pixel(format);
    Place place;
    if (contiguous) {
        place.at[0] = place.at[1] = place.at[2] = (long long)group * bytes;
        return place;
    }
    const int per_row = width / 4;
    const int row = group / per_row;
    const int column = (group - row * per_row) * bytes;
    place.at[0] = row * planes[0].row_stride + column;
    place.at[1] = place.at[2] = 0;
    if (format == EF_PLANAR) {
        place.at[1] = row * planes[1].row_stride + column;
        place.at[2] = row * planes[2].row_stride + column;
    }
    return place;
}

/// Loads four pixels as packed RGB. `fourth` gets the whole words of a format with a fourth byte, and nothing else.
template <bool CONSTANT>
__device__ __forceinline__ void load_four(
    const Plane (&planes)[3], int format, const Place &place, unsigned (&w)[3], uint4 &fourth) {
    const unsigned char *at = planes[0].data + place.at[0];
    if (format <= EF_BGR) {
        w[0] = load_word<CONSTANT>(at);
        w[1] = load_word<CONSTANT>(at + 4);
        w[2] = load_word<CONSTANT>(at + 8);
        if (format == EF_BGR) {
            swap_ends(w);
        }
    } else if (format == EF_PLANAR) {
        const unsigned r = load_word<CONSTANT>(at);
        const unsigned g = load_word<CONSTANT>(planes[1].data + place.at[1]);
        const unsigned b = load_word<CONSTANT>(planes[2].data + place.at[2]);
        const unsigned low = __byte_perm(r, g, 0x5140), high = __byte_perm(r, g, 0x7362);
        const unsigned middle = __byte_perm(low, b, 0x7653);
        w[0] = __byte_perm(low, b, 0x2410);
        w[1] = __byte_perm(middle, high, 0x5410);
        w[2] = __byte_perm(middle, high, 0x3762);
    } else {
        fourth = load_four_words<CONSTANT>(at);
        const bool bgr = format == EF_BGRX;
        w[0] = __byte_perm(fourth.x, fourth.y, bgr ? 0x6012 : 0x4210);
        w[1] = __byte_perm(fourth.y, fourth.z, bgr ? 0x5601 : 0x5421);
        w[2] = __byte_perm(fourth.z, fourth.w, bgr ? 0x4560 : 0x6542);
    }
}

/// Stores four pixels of packed RGB in a format; a fourth byte is taken from `fourth`.
__device__ __forceinline__ void store_four(
    const Plane (&planes)[3], int format, const Place &place, const unsigned (&w)[3], const uint4 &fourth) {
    unsigned char *at = planes[0].data + place.at[0];
    if (format == EF_PLANAR) {
        store(at, __byte_perm(__byte_perm(w[0], w[1], 0x6630), w[2], 0x5210));
        store(planes[1].data + place.at[1], __byte_perm(__byte_perm(w[0], w[1], 0x7741), w[2], 0x6210));
        store(planes[2].data + place.at[2], __byte_perm(__byte_perm(w[0], w[1], 0x5552), w[2], 0x7410));
        return;
    }
    if (format <= EF_BGR) {
        unsigned three[3] = {w[0], w[1], w[2]};
        if (format == EF_BGR) {
            swap_ends(three);
        }
        for (int i = 0; i < 3; i++) {
            store(at + 4 * i, three[i]);
        }
        return;
    }
    // Each pixel's three bytes, then the order, with the kept byte in one step.
    const unsigned order = format == EF_BGRX ? 0x7012 : 0x7210;
    uint4 out;
    out.x = __byte_perm(w[0], fourth.x, order);
    out.y = __byte_perm(__byte_perm(w[0], w[1], 0x5543), fourth.y, order);
    out.z = __byte_perm(__byte_perm(w[1], w[2], 0x4432), fourth.z, order);
    out.w = __byte_perm(w[2] >> 8, fourth.w, order);
    store(at, out);
}
